//! tokio sockets for TCP and UDP on the state machine of the stack.

mod any;
mod core;
mod driver;
mod listener;
mod options;
mod ready;
mod siblings;
mod socket;
mod split;
mod stack;
mod stream;
#[cfg(test)]
mod tests;
mod thread;
mod udp;

pub use any::{AnyTcpListener, AnyUdpSocket, PendingStream};
pub use listener::TcpListener;
pub use siblings::Sibling;
pub use socket::TcpSocket;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use stack::Stack;
pub use stream::TcpStream;
pub use thread::StackThread;
pub use udp::UdpSocket;
