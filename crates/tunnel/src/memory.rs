//! Datagrams in memory, for tests.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::Datagrams;

/// A network in memory: datagrams to the address of another socket arrive there in order.
///
/// As with UDP, datagrams to an unused address or a socket with a full queue are lost.
#[derive(Clone, Debug)]
pub struct Switch {
    capacity: usize,
    queues: Arc<Mutex<HashMap<SocketAddr, Arc<Queue>>>>,
}

#[derive(Debug, Default)]
struct Queue {
    datagrams: Mutex<VecDeque<(Vec<u8>, SocketAddr)>>,
    arrived: Notify,
}

/// A socket of a [`Switch`].
#[derive(Debug)]
pub struct Socket {
    switch: Switch,
    address: Mutex<SocketAddr>,
    queue: Arc<Queue>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switch {
    /// Creates a network with queues of `capacity` datagrams at each socket.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, queues: Arc::default() }
    }

    /// Opens a socket.
    ///
    /// # Errors
    /// `AddrInUse`: another socket has the address.
    pub fn bind(&self, address: SocketAddr) -> io::Result<Socket> {
        let queue = Arc::<Queue>::default();
        self.occupy(address, &queue)?;
        Ok(Socket { switch: self.clone(), address: Mutex::new(address), queue })
    }

    fn occupy(&self, address: SocketAddr, queue: &Arc<Queue>) -> io::Result<()> {
        let mut queues = lock(&self.queues);
        if queues.contains_key(&address) {
            let why = format!("another socket of the switch has the address {address}");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
        }
        queues.insert(address, queue.clone());
        Ok(())
    }
}

impl Socket {
    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        *lock(&self.address)
    }

    /// Changes the address, as for a roaming mobile; datagrams to the old address are lost.
    ///
    /// # Errors
    /// Those of [`Switch::bind`].
    pub fn move_to(&self, address: SocketAddr) -> io::Result<()> {
        self.switch.occupy(address, &self.queue)?;
        let old = std::mem::replace(&mut *lock(&self.address), address);
        lock(&self.switch.queues).remove(&old);
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let address = self.address();
        lock(&self.switch.queues).remove(&address);
    }
}

impl Datagrams for Socket {
    fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let datagram = lock(&self.queue.datagrams).pop_front();
        let (datagram, from) = datagram.ok_or(io::ErrorKind::WouldBlock)?;
        let len = datagram.len().min(buf.len());
        buf[..len].copy_from_slice(&datagram[..len]);
        Ok((len, from))
    }

    fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        let queue = lock(&self.switch.queues).get(&to).cloned();
        if let Some(queue) = queue {
            let mut datagrams = lock(&queue.datagrams);
            if datagrams.len() < self.switch.capacity {
                datagrams.push_back((data.to_vec(), self.address()));
                queue.arrived.notify_one();
            }
        }
        Ok(data.len())
    }

    async fn readable(&self) -> io::Result<()> {
        while lock(&self.queue.datagrams).is_empty() {
            self.queue.arrived.notified().await;
        }
        Ok(())
    }

    async fn writable(&self) -> io::Result<()> {
        Ok(())
    }
}
