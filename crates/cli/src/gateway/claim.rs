//! Which near gateways run on this machine: two with the same key take each other's session.
//!
//! A gateway has a socket with the name of its key in the abstract namespace, where users see each other's names, and can take
//! any name. The process that has a name proves that it has the private key. Without a proof the name is not believed.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

use airtcp_tunnel::{PresharedKey, PrivateKey, PublicKey};
use sha2::{Digest, Sha256};

/// How long a proof may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the sending of one may take: the one who asks can have a full queue.
const SENDING: Duration = Duration::from_millis(10);

/// A random text of this length.
const QUESTION: usize = 44;

/// Takes the name of a key until the process ends. If a process that does not have the key holds it, this one goes without.
///
/// # Errors
/// `AddrInUse`: another gateway with this key runs on this machine, or another check.
pub(super) fn claim(key: &PrivateKey) -> io::Result<()> {
    let name = name(&key.public_key())?;
    match UnixDatagram::bind_addr(&name) {
        Ok(socket) => {
            let key = key.clone();
            thread::Builder::new().name("claim".to_owned()).spawn(move || prove(&socket, &key))?;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match is_proven(&name, key) {
            Ok(true) => Err(error),
            Ok(false) | Err(_) => {
                tracing::warn!(
                    "a process that does not have this key holds its name (`ss -xpa | grep {}`): `airtcp gateway check` cannot \
                     see whether a gateway with the key runs",
                    key.public_key()
                );
                Ok(())
            }
        },
        Err(error) => Err(error),
    }
}

fn name(key: &PublicKey) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("airtcp/gateway-near/{key}"))
}

/// Answers those who ask, until the socket fails.
fn prove(socket: &UnixDatagram, key: &PrivateKey) {
    let mut question = [0; QUESTION + 1];
    let _ = socket.set_write_timeout(Some(SENDING));
    while let Ok((len, asker)) = socket.recv_from(&mut question) {
        if len == QUESTION {
            let _ = socket.send_to_addr(&proof(key, &question[..len]), &asker);
        }
    }
}

/// Whether the process that has the name has the key.
fn is_proven(name: &SocketAddr, key: &PrivateKey) -> io::Result<bool> {
    let question = PresharedKey::generate().to_string();
    let asker = format!("airtcp/gateway-check/{}", PresharedKey::generate());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(asker)?)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    // From here on only that process can send to it.
    socket.connect_addr(name)?;
    socket.send(question.as_bytes())?;
    let mut answer = [0; 33];
    let len = socket.recv(&mut answer)?;
    Ok(answer[..len] == proof(key, question.as_bytes()))
}

/// Key and question have one length each, so that no other pair has the same text.
fn proof(key: &PrivateKey, question: &[u8]) -> [u8; 32] {
    let hash = Sha256::new_with_prefix("airtcp gateway near: proof of the key");
    hash.chain_update(key.to_string()).chain_update(question).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_believed_with_the_key_alone() {
        let (ours, theirs) = (PrivateKey::generate(), PrivateKey::generate());
        claim(&ours).unwrap();
        for _ in 0..3 {
            assert_eq!(claim(&ours).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
        // Other users hold names, and answer nothing or with a proof of another key.
        let taken = UnixDatagram::bind_addr(&name(&theirs.public_key()).unwrap()).unwrap();
        claim(&theirs).unwrap();
        thread::spawn(move || prove(&taken, &PrivateKey::generate()));
        claim(&theirs).unwrap();
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        let key = PrivateKey::generate();
        claim(&key).unwrap();
        let asker = format!("airtcp/gateway-check/{}", PresharedKey::generate());
        let asker = SocketAddr::from_abstract_name(asker).unwrap();
        let socket = UnixDatagram::bind_addr(&asker).unwrap();
        socket.connect_addr(&name(&key.public_key()).unwrap()).unwrap();
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
