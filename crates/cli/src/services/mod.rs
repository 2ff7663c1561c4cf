//! The services of `serve`, per connection. Files are served over any byte stream: this stack's
//! TCP, the kernel's, or RRTP.

mod accept;
mod echo;
mod http;
mod sink;
mod source;

use std::io;

use airtcp_net::TcpStream;
use tokio::sync::watch;

pub(crate) use accept::{Accept, accept};
pub(crate) use http::{Body as FileBody, Files, NETWORK, serve as serve_files};

/// The service of a port.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// Sends back what it reads.
    Echo,
    /// Reads to the end and answers with the number of bytes.
    Sink,
    /// Writes until the peer closes.
    Source,
    /// Serves files with GET, HEAD and PUT, and resumable uploads.
    Http(Files),
}

impl Service {
    /// Returns its name on the command line.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Sink => "sink",
            Self::Source => "source",
            Self::Http(_) => "http",
        }
    }

    /// Serves one connection until the peer closes it. On `stop`, `source` ends the stream, and
    /// `http` finishes the current request.
    ///
    /// # Errors
    /// Those of the stream; a peer that does not speak HTTP.
    pub(crate) async fn serve(&self, stream: &mut TcpStream, stop: Stop) -> io::Result<()> {
        match self {
            Self::Echo => echo::serve(stream).await,
            Self::Sink => sink::serve(stream).await,
            Self::Source => source::serve(stream, stop).await,
            // Boxed, because its future is by far the largest and would enlarge those of all
            // services.
            Self::Http(files) => Box::pin(http::serve(files, stream, stop)).await,
        }
    }
}

/// The signal to stop. Clones share one signal.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Creates a signal and its sender.
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits for the signal. A dropped sender counts as sent.
    pub(crate) async fn wait(&mut self) {
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

#[cfg(test)]
mod tests {
    use airtcp_device::memory;
    use airtcp_net::{Stack, TcpStream};
    use airtcp_stack::HostConfig;

    /// A connection between two stacks: the client's end and the server's. The device ends with the
    /// stacks, and a stack with its last handle.
    pub(super) async fn connected() -> (TcpStream, TcpStream, [Stack; 2]) {
        let (left, right) = memory::pair(1500, 64);
        let start = |device, own: &str| {
            Stack::new(device, HostConfig::new([own.parse().unwrap()])).unwrap()
        };
        let (client, server) = (start(left, "10.0.0.1/24"), start(right, "10.0.0.2/24"));
        let address = "10.0.0.2:7".parse().unwrap();
        let listener = server.listen(address, 1).unwrap();
        let (there, here) = tokio::join!(client.connect(address), listener.accept());
        (there.unwrap(), here.unwrap().0, [client, server])
    }
}
