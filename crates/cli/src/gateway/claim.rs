//! Detects near gateways with the same key on this machine: they would take each other's session.
//!
//! Each gateway binds a socket in the abstract namespace. Users see each other's names there, and
//! can bind any name. A gateway's name consists of its public key and a random part, so that no one
//! can bind it first. The process that has bound a name must prove that it has the private key;
//! without a proof the name is ignored.

use std::collections::BTreeSet;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::{Duration, Instant};

use airtcp_tunnel::{PresharedKey, PrivateKey, PublicKey};
use sha2::{Digest, Sha256};

/// The time limit for all proofs.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time limit for sending one proof: the queue of the asking process may be full.
const SENDING: Duration = Duration::from_millis(10);
/// The most names that are asked.
const MOST: usize = 256;

/// The length of a question, which is a random text.
const QUESTION: usize = 44;
/// The number of characters in the random part of a name, 6 bits each. A name has at most 107.
const RANDOM: usize = 16;

/// Binds a name for a key until the process ends, unless a process with the key has one.
///
/// # Errors
/// `AddrInUse`: another gateway or check with this key runs on this machine.
pub(super) fn claim(key: &PrivateKey) -> io::Result<()> {
    let prefix = prefix(&key.public_key());
    if is_running(&prefix, key)? {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let name = SocketAddr::from_abstract_name(prefix + &random()[..RANDOM])?;
    let socket = UnixDatagram::bind_addr(&name)?;
    let key = key.clone();
    thread::Builder::new().name("claim".to_owned()).spawn(move || prove(&socket, &key))?;
    Ok(())
}

fn prefix(key: &PublicKey) -> String {
    format!("airtcp/gateway-near/{key}/")
}

fn random() -> String {
    PresharedKey::generate().to_string()
}

/// Returns the names with this prefix in this network namespace.
fn names(prefix: &str) -> io::Result<BTreeSet<String>> {
    let table = std::fs::read("/proc/thread-self/net/unix")?;
    let table = String::from_utf8_lossy(&table);
    let names = table.lines().filter_map(|line| Some(line.split_once(" @")?.1));
    Ok(names.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect())
}

/// Answers questions until the socket fails.
fn prove(socket: &UnixDatagram, key: &PrivateKey) {
    let mut question = [0; QUESTION + 1];
    let _ = socket.set_write_timeout(Some(SENDING));
    while let Ok((len, asker)) = socket.recv_from(&mut question) {
        if len == QUESTION {
            let _ = socket.send_to_addr(&proof(key, &question[..len]), &asker);
        }
    }
}

/// Whether a process with the key has bound a name. All names are asked in parallel.
fn is_running(prefix: &str, key: &PrivateKey) -> io::Result<bool> {
    let names = names(prefix)?;
    let asked: Vec<_> = names.iter().take(MOST).filter_map(|name| ask(name).ok()).collect();
    let deadline = Instant::now() + PATIENCE;
    let is_proven = asked.iter().any(|(socket, question)| {
        // An answer that arrived during the wait for others is read even after the deadline.
        let left = deadline.saturating_duration_since(Instant::now());
        let mut answer = [0; 33];
        socket.set_read_timeout(Some(left.max(SENDING))).is_ok()
            && socket
                .recv(&mut answer)
                .is_ok_and(|len| answer[..len] == proof(key, question.as_bytes()))
    });
    if !is_proven && !names.is_empty() {
        tracing::warn!(
            "processes that do not prove that they have the key {} have {} of its names (`ss -xpa | grep {prefix}`): they are not \
             believed, and of many not all are asked",
            key.public_key(),
            names.len()
        );
    }
    Ok(is_proven)
}

/// Sends a question to the process that has bound a name. Only that process can answer.
fn ask(name: &str) -> io::Result<(UnixDatagram, String)> {
    let question = random();
    let asker = format!("airtcp/gateway-check/{}", random());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(asker)?)?;
    socket.set_write_timeout(Some(SENDING))?;
    socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    socket.send(question.as_bytes())?;
    Ok((socket, question))
}

/// Returns the proof for a question. Key and question have fixed lengths, so that no other pair
/// gives the same text.
fn proof(key: &PrivateKey, question: &[u8]) -> [u8; 32] {
    let hash = Sha256::new_with_prefix("airtcp gateway near: proof of the key");
    hash.chain_update(key.to_string()).chain_update(question).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(name: &str) -> UnixDatagram {
        UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
    }

    #[test]
    fn a_name_is_believed_with_the_key_alone() {
        let (ours, theirs) = (PrivateKey::generate(), PrivateKey::generate());
        claim(&ours).unwrap();
        for _ in 0..3 {
            assert_eq!(claim(&ours).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
        // Other users bind names, and do not answer, or answer with a proof of another key.
        let prefix = prefix(&theirs.public_key());
        let _silent = take(&format!("{prefix}a"));
        let lying = take(&format!("{prefix}b"));
        thread::spawn(move || prove(&lying, &PrivateKey::generate()));
        assert!(!is_running(&prefix, &theirs).unwrap());
    }

    /// Another user may bind names before the gateway starts, and others while it runs.
    #[test]
    fn names_of_others_do_not_hide_a_gateway() {
        let key = PrivateKey::generate();
        let prefix = prefix(&key.public_key());
        let of_others = |first: usize| -> Vec<UnixDatagram> {
            (first..first + 20).map(|number| take(&format!("{prefix}{number:04}"))).collect()
        };
        let _before = of_others(0);
        claim(&key).unwrap();
        let _after = of_others(20);
        assert_eq!(claim(&key).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        let key = PrivateKey::generate();
        claim(&key).unwrap();
        let asker = format!("airtcp/gateway-check/{}", PresharedKey::generate());
        let asker = SocketAddr::from_abstract_name(asker).unwrap();
        let socket = UnixDatagram::bind_addr(&asker).unwrap();
        let name = names(&prefix(&key.public_key())).unwrap().pop_first().unwrap();
        socket.connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
        for question in [&[7; QUESTION - 1][..], &[7; QUESTION + 1], &[7; 4096], &[7; QUESTION]] {
            socket.send(question).unwrap();
        }
        let mut answer = [0; 99];
        assert_eq!(socket.recv(&mut answer).unwrap(), 32);
        assert_eq!(answer[..32], proof(&key, &[7; QUESTION]));
        socket.set_nonblocking(true).unwrap();
        assert_eq!(socket.recv(&mut answer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
