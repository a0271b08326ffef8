//! A stub endpoint: reads a request of the JSON protocols, and does what the test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::{Credentials, Region};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use waybill_aws::Clients;
use waybill_aws::clients::{Limits, loader};

/// What the stub does with a request.
pub(crate) enum Reply {
    /// Answers with this status and body.
    Answer(u16, Value),
    /// Cuts the connection.
    Cut,
    /// Reads, and never answers.
    Silence,
}

/// A refusal, as the JSON protocols write it.
pub(crate) fn refusal(status: u16, code: &str) -> Reply {
    Reply::Answer(status, json!({ "__type": format!("com.amazonaws.service#{code}"), "message": "so it is" }))
}

/// A request: its operation and its body.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) operation: String,
    pub(crate) body: Value,
}

/// An endpoint on this machine.
pub(crate) struct Stub {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    /// Starts to answer.
    pub(crate) async fn start(mut reply: impl FnMut(&Asked) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let log = asked.clone();
        tokio::spawn(async move {
            // Held, so that a silent connection stays open.
            let mut silent = Vec::new();
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let Some(request) = read(&mut connection).await else { continue };
                let reply = reply(&request);
                log.lock().unwrap().push(request);
                match reply {
                    Reply::Answer(status, body) => write(connection, status, &body.to_string()).await,
                    Reply::Cut => drop(connection),
                    Reply::Silence => silent.push(connection),
                }
            }
        });
        Self { address, asked }
    }

    /// Clients that speak to it.
    pub(crate) async fn clients(&self, limits: Limits) -> Clients {
        let credentials = Credentials::new("111111111111", "test", None, None, "stub");
        let loading = loader(limits).endpoint_url(&self.address).region(Region::new("eu-central-1"));
        Clients::of(&loading.credentials_provider(credentials).load().await)
    }

    /// Every request so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often an operation was asked for.
    pub(crate) fn count(&self, operation: &str) -> usize {
        self.asked().iter().filter(|asked| asked.operation == operation).count()
    }
}

async fn read(connection: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head_ends = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_ends].to_vec()).ok()?;
    let headers: BTreeMap<String, &str> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    let length: usize = headers.get("content-length")?.parse().ok()?;
    while bytes.len() < head_ends + length {
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let operation = headers.get("x-amz-target")?.rsplit('.').next()?.to_owned();
    Some(Asked { operation, body: serde_json::from_slice(&bytes[head_ends..head_ends + length]).ok()? })
}

async fn write(mut connection: TcpStream, status: u16, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/x-amz-json-1.0\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let _ = connection.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = connection.shutdown().await;
}
