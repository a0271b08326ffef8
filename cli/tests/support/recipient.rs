//! A recipient on loopback that answers by a script, and keeps what it was sent.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        &found.unwrap_or_else(|| panic!("no header {name} in {:?}", self.headers)).1
    }
}

/// What is answered: a status, after a pause.
pub(crate) type Script = fn(nth: usize, got: &Got) -> (u16, Duration);

/// The recipient; it ends with the test's process.
pub(crate) struct Recipient {
    pub(crate) url: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Recipient {
    pub(crate) fn start(script: Script) -> Self {
        Self::answering(move |nth, got| {
            let (status, pause) = script(nth, got);
            std::thread::sleep(pause);
            let body = format!("told {nth} \u{1b}[31m");
            format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        })
    }

    /// Answers 500, with every header of the request in the body and these in `location`.
    pub(crate) fn echoing(located: &'static [&'static str]) -> Self {
        Self::answering(move |_, got| {
            let body: String = got.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            let location: Vec<&str> = located.iter().map(|name| got.header(name)).collect();
            format!(
                "HTTP/1.1 500 X\r\nlocation: /{}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                location.join("/"),
                body.len()
            )
        })
    }

    /// Answers with the whole request, head and body, and the status that its event's ID ends in
    /// (`…-503`), or 200; its signature and what else is named stand in `location` and `retry-after`.
    pub(crate) fn mirroring(told: &'static [&'static str]) -> Self {
        Self::answering(move |_, got| {
            let id = got.header("waybill-event-id");
            let status: u16 = id.rsplit('-').next().and_then(|end| end.parse().ok()).unwrap_or(200);
            let mut body: String =
                got.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            body.push_str(&String::from_utf8_lossy(&got.body));
            let told: Vec<&str> = told.iter().map(|name| got.header(name)).collect();
            let told = told.join("/");
            format!(
                "HTTP/1.1 {status} X\r\nlocation: /{told}\r\nretry-after: {told}\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            )
        })
    }

    /// Answers with these very bytes.
    fn answering(answer: impl Fn(usize, &Got) -> String + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/in?key=PATH-SECRET", listener.local_addr().unwrap());
        let got: Arc<Mutex<Vec<Got>>> = Arc::default();
        let kept = got.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (kept.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &kept, &*answer));
            }
        });
        Self { url, got }
    }

    pub(crate) fn requests(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// How many different deliveries it was sent: its effects, if it deduplicates.
    pub(crate) fn effects(&self) -> usize {
        let ids: BTreeSet<String> =
            self.requests().iter().map(|got| got.header("idempotency-key").to_owned()).collect();
        ids.len()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Got>>, answer: &dyn Fn(usize, &Got) -> String) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let got = Got { headers, body };
    let nth = {
        let mut kept = kept.lock().unwrap();
        kept.push(got.clone());
        kept.len()
    };
    (&stream).write_all(answer(nth, &got).as_bytes()).ok()
}
