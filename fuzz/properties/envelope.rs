//! A message body: whatever is read as ours is written and read back as the same.

use waybill_domain::envelope::{Decoded, VERSION, decode};

use crate::said::is_one_short_line;

pub(crate) fn check(data: &[u8]) {
    let body = String::from_utf8_lossy(data);
    let decoded = decode(&body);
    let written = match &decoded {
        Decoded::WakeUp(wakeup) => wakeup.encode(),
        Decoded::DeadLetter(letter) => letter.encode(),
        Decoded::Newer(version) => return assert!(*version > VERSION),
        Decoded::Undecodable(why) => return is_one_short_line(why),
    };
    assert!(written.bytes().all(|b| (0x20..0x7f).contains(&b)), "not what a queue takes: {written:?}");
    if let Decoded::WakeUp(_) = decoded {
        assert!(written.len() < 1024, "{} bytes: {written}", written.len());
    }
    assert_eq!(decode(&written), decoded, "written again as {written}");
}
