//! Carrying out a script on one connection.

use tokio::time::sleep;

use super::line::{Inbox, Socket};
use super::log::Log;
use super::script::{Act, Reading, Script};

/// Reads and answers requests until one side ends the connection.
pub(crate) async fn connection(socket: Socket, number: usize, script: &Script, log: &Log) {
    let mut inbox = Inbox::new(socket);
    while let Some(mut request) = inbox.next(script.reading, number, log).await {
        let answer = (script.decide)(&request);
        request.applied = answer.applied;
        let whole = request.complete;
        // Logged before it is answered: who has an answer finds the request in the log.
        log.add(request);
        for act in answer.acts {
            match act {
                Act::Wait(delay) => sleep(delay).await,
                Act::Write(bytes) => {
                    if inbox.socket.write(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::Drip { bytes, at_a_time, every } => {
                    for piece in bytes.chunks(at_a_time) {
                        if inbox.socket.write(piece).await.is_err() {
                            return;
                        }
                        sleep(every).await;
                    }
                }
                Act::Repeat { bytes, every } => {
                    while inbox.socket.write(&bytes).await.is_ok() {
                        sleep(every).await;
                    }
                    return;
                }
                Act::Hang => return inbox.socket.ended().await,
                Act::Close => return inbox.socket.close().await,
                Act::Reset => return inbox.socket.reset(),
            }
        }
        // What is left of a request that was read in part would be taken for the next one.
        if !whole || script.reading == Reading::Nothing {
            return inbox.socket.close().await;
        }
    }
}
