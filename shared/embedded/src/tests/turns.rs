//! Whose turn it is, where more is visible than is taken.

use waybill_domain::time::DurationMs;
use waybill_service::ports::{Inbox as _, Outgoing, Queue as _};

use super::{Still, fresh};
use crate::EmbeddedStore;

const HIDDEN: DurationMs = DurationMs::from_secs(60);

async fn send(store: &EmbeddedStore<Still>, group: &str, messages: usize, delay: DurationMs) {
    for n in 0..messages {
        let body = match group.split_once('#') {
            Some((tenant, destination)) => {
                format!(r#"{{"tenant":"{tenant}","destination":"{destination}","n":{n}}}"#)
            }
            None => group.to_owned(),
        };
        store.send(Outgoing { body, delay }).await.unwrap();
    }
}

/// To whom, and how many.
type Sent = (&'static str, usize);

/// How many of each of `groups` are received at once, round by round.
async fn rounds(store: &EmbeddedStore<Still>, most: usize, groups: &[&str]) -> Vec<Vec<usize>> {
    let mut rounds = Vec::new();
    loop {
        let received = store.receive(most, HIDDEN).await.unwrap();
        if received.is_empty() {
            return rounds;
        }
        let of = |group: &&str| {
            let name = group.split('#').next().unwrap_or_default();
            received.iter().filter(|message| message.body.contains(name)).count()
        };
        rounds.push(groups.iter().map(of).collect());
    }
}

#[tokio::test]
async fn a_quiet_group_does_not_wait_for_a_busy_one() {
    // In this order they were sent; what each round of ten takes of each.
    let cases: [(&[Sent], &[&[usize]]); 5] = [
        // All that there is fits: the oldest first, as ever.
        (&[("busy#a", 7), ("quiet#b", 3)], &[&[7, 3]]),
        // Five are the oldest, and five are shared by the two.
        (&[("busy#a", 30), ("quiet#b", 3)], &[&[8, 2], &[9, 1], &[10, 0], &[3, 0]]),
        (
            &[("busy#a", 30), ("quiet#b", 1), ("third#c", 1)],
            &[&[8, 1, 1], &[10, 0, 0], &[10, 0, 0], &[2, 0, 0]],
        ),
        // One alone is not kept waiting by anybody.
        (&[("busy#a", 25)], &[&[10], &[10], &[5]]),
        // Whose body does not say whose it is: among the oldest, and never lost.
        (&[("busy#a", 12), ("nobody's", 2)], &[&[10, 0], &[2, 2]]),
    ];
    for (sent, expected) in cases {
        let (store, _dir) = fresh();
        for (group, messages) in sent {
            send(&store, group, *messages, DurationMs::ZERO).await;
        }
        let groups: Vec<&str> = sent.iter().map(|(group, _)| *group).collect();
        assert_eq!(rounds(&store, 10, &groups).await, expected, "{sent:?}");
    }
}

/// How many rounds it takes until as many of the quiet have come, so many at a time.
async fn rounds_until(store: &EmbeddedStore<Still>, most: usize, quiet: usize) -> usize {
    let (mut rounds, mut seen) = (0, 0);
    while seen < quiet {
        let received = store.receive(most, HIDDEN).await.unwrap();
        assert!(!received.is_empty(), "the quiet were received before");
        seen += received.iter().filter(|message| message.body.contains("quiet")).count();
        rounds += 1;
    }
    rounds
}

/// More groups than a round has room for: each has its turn, whatever the busy one sends. So it is where a
/// poller with little room takes one message at a time.
#[tokio::test]
async fn turns_go_round() {
    // How many are taken at once, and how many rounds 20 quiet groups and a busy one take.
    for (most, expected) in [(10, 5), (4, 11), (3, 14), (2, 21), (1, 42)] {
        let (store, _dir) = fresh();
        send(&store, "busy#a", 60, DurationMs::ZERO).await;
        for n in 0..20 {
            send(&store, &format!("quiet-{n:02}#b"), 1, DurationMs::ZERO).await;
        }
        assert_eq!(rounds_until(&store, most, 20).await, expected, "{most} at a time");
    }
}

/// What a stranger put into the queue is received like all else, whatever it says of itself.
#[tokio::test]
async fn a_strange_body_stops_nobody() {
    for strange in
        [r#"{"tenant":"\ud800","destination":"quiet"}"#, r#"{"tenant":["quiet"]}"#, "quiet", "[]quiet"]
    {
        let (store, _dir) = fresh();
        send(&store, "busy#a", 30, DurationMs::ZERO).await;
        send(&store, strange, 1, DurationMs::ZERO).await;
        assert!(rounds_until(&store, 3, 1).await <= 11, "{strange}");
    }
}

/// Groups whose messages are all for later do not use up the turns of those that have some now.
#[tokio::test]
async fn who_has_nothing_visible_has_no_turn() {
    let (store, _dir) = fresh();
    send(&store, "busy#a", 100, DurationMs::ZERO).await;
    for n in 0..300 {
        send(&store, &format!("later-{n:03}#b"), 1, HIDDEN).await;
    }
    send(&store, "quiet#c", 1, DurationMs::ZERO).await;
    let mut rounds = 0;
    loop {
        let received = store.receive(10, HIDDEN).await.unwrap();
        assert!(received.iter().all(|message| !message.body.contains("later")));
        rounds += 1;
        if received.iter().any(|message| message.body.contains("quiet")) {
            break;
        }
    }
    // 302 groups, 64 of which are looked at in a round.
    assert_eq!(rounds, 5);
}
