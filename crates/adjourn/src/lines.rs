//! Lines of an input, as they come: with their numbers, without the blank ones.

use std::io::{self, BufRead, BufReader, Read};

/// The lines of an input that are not blank.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    number: usize,
    ahead: Option<(usize, Vec<u8>)>,
}

impl<R: Read> Lines<R> {
    pub(crate) fn of(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(1024 * 1024, input),
            number: 0,
            ahead: None,
        }
    }

    /// The next line with its number, from 1; none at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<(usize, Vec<u8>)>> {
        match self.ahead.take() {
            Some(line) => Ok(Some(line)),
            None => self.read(),
        }
    }

    /// The next line, which stays the next.
    pub(crate) fn peek(&mut self) -> io::Result<Option<&[u8]>> {
        if self.ahead.is_none() {
            self.ahead = self.read()?;
        }
        Ok(self.ahead.as_ref().map(|(_, line)| line.as_slice()))
    }

    /// Whether the next line may have to be waited for.
    pub(crate) fn would_wait(&self) -> bool {
        self.ahead.is_none() && !self.input.buffer().contains(&b'\n')
    }

    /// All that is left, whatever it is.
    pub(crate) fn rest(mut self) -> io::Result<Vec<u8>> {
        let mut rest = self.ahead.take().map(|(_, line)| line).unwrap_or_default();
        self.input.read_to_end(&mut rest)?;
        Ok(rest)
    }

    fn read(&mut self) -> io::Result<Option<(usize, Vec<u8>)>> {
        let mut line = Vec::new();
        while self.input.read_until(b'\n', &mut line)? > 0 {
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Ok(Some((self.number, line)));
            }
            line.clear();
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_passed_over_and_counted() {
        let mut lines = Lines::of(&b"\n \na\r\n\nb"[..]);
        assert_eq!(lines.peek().unwrap(), Some(&b"a\r\n"[..]));
        assert_eq!(lines.next().unwrap(), Some((3, b"a\r\n".to_vec())));
        assert!(!lines.would_wait());
        assert_eq!(lines.next().unwrap(), Some((5, b"b".to_vec())));
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn the_rest_begins_with_the_line_that_was_looked_at() {
        let mut lines = Lines::of(&b"\n{\n\n}\n"[..]);
        assert_eq!(lines.peek().unwrap(), Some(&b"{\n"[..]));
        assert_eq!(lines.rest().unwrap(), b"{\n\n}\n");
    }
}
