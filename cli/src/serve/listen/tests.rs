//! Callers that are slow, many or large, on a clock of the test's own.

use bytes::Bytes;
use tokio::io::{DuplexStream, duplex};
use tokio::time::{Instant, sleep};
use waybill_domain::address::Locality;
use waybill_service::acts::Desk;
use waybill_service::config_file::Rules;
use waybill_service::source::LONGEST_HOLD;
use waybill_system::{SystemClock, SystemDice};

use super::super::Source;
use super::super::health::Health;
use super::super::room::{Room, Rooms};
use super::super::scrape::Scrape;
use super::*;

const CONFIG: &str = "
[destinations.d]
tenants = [\"acme\"]
url = \"https://hooks.example.com/in\"
secrets = [\"env:S\"]
event_types = [\"*\"]
[sources.s]
tenant = \"acme\"
scheme = \"github\"
secrets = [\"env:S\"]
event_id = \"header:x-github-delivery\"
event_type = \"lease.imported\"
";

/// A door that has room for so many bytes of known callers and of strangers each, and its folder.
async fn door(room: usize) -> (Arc<Ingest>, tempfile::TempDir) {
    door_of(Rooms { known: Room::of(room), strangers: Room::of(room) }).await
}

async fn door_of(rooms: Rooms) -> (Arc<Ingest>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = waybill_embedded::EmbeddedStore::open(&folder.path().join("w.db"), SystemClock).unwrap();
    let rules = Rules::from(Locality::AllowLocal);
    let desk = Desk { office: &store, clock: &SystemClock, dice: &SystemDice };
    desk.apply(CONFIG, rules, "test", "a test").await.unwrap();
    let source = Arc::new(Source::new(store.clone(), rules, SystemClock, LONGEST_HOLD));
    // Read before a caller comes: what is waited for is the caller, and nothing else.
    source.current().await.unwrap();
    let (locality, scrape) = (Locality::AllowLocal, Scrape::of_nothing());
    let door = Ingest { store, source, locality, rooms, scrape, health: Health::default() };
    (Arc::new(door), folder)
}

/// A conversation of this machine with a door that has room for so many bytes, and its folder.
async fn talk(room: usize) -> (DuplexStream, tempfile::TempDir) {
    let (door, folder) = door(room).await;
    (talk_at(door), folder)
}

/// A conversation of this machine with `door`.
fn talk_at(door: Arc<Ingest>) -> DuplexStream {
    let (ours, theirs) = duplex(64 * 1024);
    let (trigger, stop) = Stop::new();
    tokio::spawn(async move {
        converse(theirs, "127.0.0.1:5000".parse().unwrap(), door, stop, STALLED).await;
        drop(trigger);
    });
    ours
}

fn head(length: usize) -> String {
    format!(
        "POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}

/// What the door says until it hangs up, and after how long.
async fn rest(mut stream: DuplexStream) -> (String, Duration) {
    let began = Instant::now();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    (said, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn who_sends_no_head_is_hung_up_on() {
    let (stream, _folder) = talk(1024).await;
    let (said, after) = rest(stream).await;
    assert_eq!((said.as_str(), after.as_secs()), ("", 10));
}

#[tokio::test(start_paused = true)]
async fn who_sends_a_head_byte_by_byte_is_hung_up_on_too() {
    let (mut stream, _folder) = talk(1024).await;
    let began = Instant::now();
    for byte in head(2).bytes() {
        sleep(Duration::from_secs(1)).await;
        if stream.write_all(&[byte]).await.is_err() {
            break;
        }
    }
    assert!((10..=12).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_sends_a_body_byte_by_byte_is_told_that_it_is_late() {
    let (mut stream, _folder) = talk(1024).await;
    stream.write_all(head(1000).as_bytes()).await.unwrap();
    let (mut reading, mut writing) = tokio::io::split(stream);
    tokio::spawn(async move {
        while writing.write_all(b" ").await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    });
    let began = Instant::now();
    let mut said = vec![0; 4096];
    let length = reading.read(&mut said).await.unwrap();
    let said = String::from_utf8_lossy(&said[..length]);
    assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("request_timeout"), "{said}");
    // The body's own time, and a while of reading past it so that the answer arrives.
    assert_eq!(began.elapsed().as_secs(), 35);
}

const ASKING: &[u8] = b"GET /v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn who_reads_no_answer_is_hung_up_on() {
    let (mut stream, _folder) = talk(1024).await;
    let began = Instant::now();
    // More answers than a pipe holds.
    stream.write_all(&ASKING.repeat(10)).await.unwrap();
    while began.elapsed() < Duration::from_secs(60) && stream.write_all(b"G").await.is_ok() {
        sleep(Duration::from_secs(1)).await;
    }
    assert!((10..=12).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_reads_slowly_gets_all_answers() {
    let (mut stream, _folder) = talk(1024).await;
    stream.write_all(&ASKING.repeat(10)).await.unwrap();
    let mut got = 0;
    let mut some = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut some).await {
        got += length;
        sleep(Duration::from_secs(9)).await;
    }
    assert!(got > 10 * Answer::description().body.len(), "{got}");
}

#[tokio::test]
async fn who_reads_no_answer_of_a_real_socket_is_hung_up_on() {
    let (door, _folder) = door(1024).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut ours = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (theirs, peer) = listener.accept().await.unwrap();
    // Asks until it is hung up on, and reads nothing.
    let asking = tokio::spawn(async move { while ours.write_all(ASKING).await.is_ok() {} });
    let (_trigger, stop) = Stop::new();
    let talking = converse(theirs, peer, door, stop, Duration::from_millis(200));
    let ended = tokio::time::timeout(Duration::from_secs(20), talking).await;
    assert!(ended.is_ok(), "it waits for its caller");
    asking.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_there_is_no_room_for_is_refused_and_room_is_given_back() {
    let (mut stream, _folder) = talk(100).await;
    for (length, status) in [(101, "503"), (100, "400"), (101, "503"), (100, "400")] {
        stream.write_all(head(length).as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; length]).await.unwrap();
        let mut said = vec![0; 4096];
        let got = stream.read(&mut said).await.unwrap();
        let said = String::from_utf8_lossy(&said[..got]);
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{length}: {said}");
        assert_eq!(said.contains("overloaded") && said.contains("retry-after: 1"), status == "503", "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn strangers_take_no_room_of_those_that_are_known() {
    let signed = head(100).replace("host:", "webhook-signature: v1,bm9uZQ==\r\nhost:");
    let from_source = head(100).replace("/v1/events", "/v1/sources/s");
    for stranger in [signed, from_source] {
        let (door, _folder) = door(100).await;
        let mut holding = talk_at(door.clone());
        // All but the last byte.
        holding.write_all(stranger.as_bytes()).await.unwrap();
        holding.write_all(&[b' '; 99]).await.unwrap();
        // Until nothing is under way but that.
        sleep(Duration::from_secs(1)).await;
        for (head, status) in [(&stranger, "503"), (&head(100), "400")] {
            let mut stream = talk_at(door.clone());
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&[b' '; 100]).await.unwrap();
            let mut said = vec![0; 4096];
            let got = stream.read(&mut said).await.unwrap();
            let said = String::from_utf8_lossy(&said[..got]);
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {said}");
        }
    }
}

/// However many large bodies strangers send, the small ones of others find room; a large one does not.
#[tokio::test(start_paused = true)]
async fn large_bodies_of_strangers_keep_out_no_small_ones() {
    let strangers = Room::of(1_000).and_for_each(50);
    let (door, _folder) = door_of(Rooms { known: Room::of(0), strangers }).await;
    let of_source = |length| head(length).replace("/v1/events", "/v1/sources/s");
    let mut holding = Vec::new();
    // All but the last byte of each: what they have beyond their own fills the room that they share.
    for _ in 0..10 {
        let mut stream = talk_at(door.clone());
        stream.write_all(of_source(151).as_bytes()).await.unwrap();
        stream.write_all(&[b' '; 150]).await.unwrap();
        holding.push(stream);
    }
    // Until nothing is under way but that.
    sleep(Duration::from_secs(1)).await;
    // What there is room for is read, and cannot be verified, as the source has no secret here.
    let (read, refused) = ("unavailable", "overloaded");
    for (length, code) in [(50, read), (51, refused), (151, refused), (50, read)] {
        let mut stream = talk_at(door.clone());
        stream.write_all(of_source(length).as_bytes()).await.unwrap();
        stream.write_all(&vec![b' '; length]).await.unwrap();
        let mut said = vec![0; 4096];
        let got = stream.read(&mut said).await.unwrap();
        let said = String::from_utf8_lossy(&said[..got]);
        assert!(said.contains(&format!("\"code\":\"{code}\"")), "{length}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_one_too_many_is_told_so() {
    let (mut ours, theirs) = duplex(64 * 1024);
    let telling = tokio::spawn(turn_away(theirs));
    ours.write_all(head(2).as_bytes()).await.unwrap();
    let mut said = vec![0; 4096];
    let got = ours.read(&mut said).await.unwrap();
    let said = String::from_utf8_lossy(&said[..got]).into_owned();
    drop(ours);
    telling.await.unwrap().unwrap();
    assert!(said.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{said}");
    let (_, body) = said.split_once("\r\n\r\n").unwrap();
    let body: serde_json::Value = serde_json::from_slice(&Bytes::from(body.to_owned())).unwrap();
    assert_eq!(body["error"]["code"], "overloaded");
}
