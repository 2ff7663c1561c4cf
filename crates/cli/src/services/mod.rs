//! What `serve` does with a connection. Every service takes any byte stream: this stack's, the
//! kernel's, a pipe in memory.

mod accept;
mod echo;
mod http;
mod sink;
mod source;

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub(crate) use accept::{Accept, accept};
pub(crate) use http::{Body as FileBody, Files, NETWORK};

/// Bytes per read and write. Every connection has a buffer of that size.
const CHUNK: usize = 64 * 1024;

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
    pub(crate) async fn serve<S>(&self, stream: &mut S, stop: Stop) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        match self {
            Self::Echo => echo::serve(stream).await,
            Self::Sink => sink::serve(stream).await,
            Self::Source => source::serve(stream, stop).await,
            Self::Http(files) => http::serve(files, stream, stop).await,
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
