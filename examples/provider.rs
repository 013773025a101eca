//! A provider on 127.0.0.1 that refuses its first call.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};

/// Starts it: its base URL, and the number of each call as it arrives. The first is answered `refusal`, the others 200.
pub(crate) async fn refusing_once(refusal: &'static str) -> std::io::Result<(String, mpsc::UnboundedReceiver<u32>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let (calls, called) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for call in 1.. {
            let Ok((mut connection, _)) = listener.accept().await else {
                return;
            };
            // A request without a body ends with an empty line; these are small enough for one read.
            let mut request = [0; 4096];
            let read = connection.read(&mut request).await;
            let answer = if call == 1 { refusal } else { "200 OK\r\n" };
            let answer = format!("HTTP/1.1 {answer}content-length: 0\r\nconnection: close\r\n\r\n");
            if read.is_err() || calls.send(call).is_err() || connection.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    });
    Ok((url, called))
}
