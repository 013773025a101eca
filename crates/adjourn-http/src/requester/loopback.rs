//! A server on 127.0.0.1 that answers as a script says and keeps what it was asked.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// What the server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers these bytes and closes.
    Answer(Vec<u8>),
    /// Reads the request and closes without an answer.
    HangUp,
    /// Reads the request and never answers.
    Hang,
}

impl Act {
    /// An answer with a status, header lines and a body of text.
    pub(crate) fn status(status: u16, headers: &str, body: &str) -> Self {
        Self::Answer(
            format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n{body}",
                body.len()
            )
            .into_bytes(),
        )
    }
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The request line and the header lines.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    /// Every value of a header, in its order.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines
            .filter(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }

    pub(crate) fn request_line(&self) -> &str {
        self.head.lines().next().unwrap()
    }
}

pub(crate) struct Loopback {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Loopback {
    /// A server that plays the acts in turn, one for each request, and then the last one again.
    pub(crate) async fn playing(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut held = Vec::new();
            for act in acts.iter().chain(std::iter::repeat(acts.last().unwrap())) {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(request) = receive(&mut stream).await else {
                    continue;
                };
                kept.lock().unwrap().push(request);
                match act {
                    Act::Answer(bytes) => stream.write_all(bytes).await.unwrap_or_default(),
                    Act::HangUp => {}
                    Act::Hang => held.push(stream),
                }
            }
        });
        Self { url, asked }
    }

    /// The URL of a port where nobody listens.
    pub(crate) async fn nobody() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn receive(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut asked = Asked { head, body: Vec::new() };
    let length = asked
        .header("content-length")
        .first()
        .map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head_end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    asked.body = bytes[head_end..].to_vec();
    Some(asked)
}
