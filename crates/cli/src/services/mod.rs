//! The services of `serve` on a connection. Files are served over any byte stream: this stack's,
//! the kernel's, RRTP's.

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

/// What a port offers.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// Sends back what it reads.
    Echo,
    /// Reads to the end and answers with the number of bytes.
    Sink,
    /// Writes until the peer closes.
    Source,
    /// Files, with GET, HEAD and PUT, and uploads that are gone on with.
    Http(Files),
}

impl Service {
    /// Its name on the command line.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Sink => "sink",
            Self::Source => "source",
            Self::Http(_) => "http",
        }
    }

    /// Serves one connection until its peer is done, or until `stop` where a service has no end of
    /// its own: `source` then ends the stream, `http` finishes the request it is at.
    ///
    /// # Errors
    /// Those of the stream; a peer that does not speak HTTP.
    pub(crate) async fn serve(&self, stream: &mut TcpStream, stop: Stop) -> io::Result<()> {
        match self {
            Self::Echo => echo::serve(stream).await,
            Self::Sink => sink::serve(stream).await,
            Self::Source => source::serve(stream, stop).await,
            // By far the largest: in a box, it does not make all others as large.
            Self::Http(files) => Box::pin(http::serve(files, stream, stop)).await,
        }
    }
}

/// Tells that it is time to come to an end. Clones share one signal.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A signal, and what sends it.
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits for the signal. A sender that is gone has sent it.
    pub(crate) async fn wait(&mut self) {
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

#[cfg(test)]
mod tests {
    use airtcp_device::memory;
    use airtcp_net::{Stack, TcpStream};
    use airtcp_stack::HostConfig;

    /// A connection of two stacks: the client's end, and the server's. Their device ends with the
    /// stacks, and a stack with the last that holds it.
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
