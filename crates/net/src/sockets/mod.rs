//! Sockets for tokio: the shell around the pure stack.

mod any;
#[cfg(test)]
mod any_tests;
mod core;
mod driver;
#[cfg(test)]
mod ending_tests;
#[cfg(test)]
mod hold_tests;
#[cfg(test)]
mod keepalive_tests;
mod listener;
mod options;
mod ready;
#[cfg(test)]
mod ready_tests;
mod siblings;
#[cfg(test)]
mod siblings_tests;
mod socket;
#[cfg(test)]
mod socket_tests;
mod split;
mod stack;
mod stream;
#[cfg(test)]
mod tests;
mod thread;
#[cfg(test)]
mod thread_tests;
mod udp;
#[cfg(test)]
mod watch_tests;

pub use any::{AnyTcpListener, AnyUdpSocket, PendingStream};
pub use listener::TcpListener;
pub use siblings::Sibling;
pub use socket::TcpSocket;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use stack::Stack;
pub use stream::TcpStream;
pub use thread::StackThread;
pub use udp::UdpSocket;
