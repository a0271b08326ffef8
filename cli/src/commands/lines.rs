//! Lines of bytes with their numbers, each bounded in length; blank ones are skipped.

use std::io::{self, BufRead as _, BufReader, Read};

use waybill_service::event::MAX_EVENT_BYTES;

/// One line.
pub(super) enum Line {
    /// Its bytes, without the line break.
    Whole(Vec<u8>),
    /// It is longer than any event may be; it was read past and not kept.
    TooLong,
}

/// The lines of a source.
pub(super) struct Lines<R> {
    source: BufReader<R>,
    number: u64,
}

/// How much is read at once.
const BUFFER: usize = 64 * 1024;

impl<R: Read> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(BUFFER, source), number: 0 }
    }

    /// Whether there is a whole line that needs no waiting for its writer.
    pub(super) fn has_more_at_hand(&self) -> bool {
        self.source.buffer().contains(&b'\n')
    }

    /// The next line that is not blank, with its number counted from 1.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Line)>> {
        loop {
            let mut bytes = Vec::new();
            let most = MAX_EVENT_BYTES as u64 + 1;
            if (&mut self.source).take(most).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let ended = bytes.last() == Some(&b'\n');
            if ended {
                bytes.pop();
            } else if bytes.len() as u64 == most {
                self.source.skip_until(b'\n')?;
                return Ok(Some((self.number, Line::TooLong)));
            }
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some((self.number, Line::Whole(bytes))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &[u8]) -> Vec<(u64, Option<usize>)> {
        let mut lines = Lines::new(source);
        let mut read = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            read.push((
                number,
                match line {
                    Line::Whole(bytes) => Some(bytes.len()),
                    Line::TooLong => None,
                },
            ));
        }
        read
    }

    #[test]
    fn lines_keep_their_numbers_and_a_giant_one_costs_only_itself() {
        assert_eq!(read(b""), []);
        assert_eq!(read(b"ab\n\n \r\nabc"), [(1, Some(2)), (4, Some(3))]);
        let mut source = vec![b'x'; MAX_EVENT_BYTES + 1];
        source.extend(b"xxx\nab\n");
        assert_eq!(read(&source), [(1, None), (2, Some(2))]);
        let mut longest = vec![b'x'; MAX_EVENT_BYTES];
        longest.extend(b"\nab");
        assert_eq!(read(&longest), [(1, Some(MAX_EVENT_BYTES)), (2, Some(2))]);
    }
}
