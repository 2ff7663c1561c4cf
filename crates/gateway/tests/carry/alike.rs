//! A carried connection behaves like a direct one.

use std::io::ErrorKind;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use crate::network::{Network, pattern, server, within};

#[derive(Clone, Copy, Debug)]
enum Action {
    Write(usize),
    Close,
    Reset,
}

/// The effect of one end's action that the other end sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Data(usize),
    End,
    Reset,
    Nothing,
}

/// Performs the actions in order; returns what the other end saw of each.
async fn run(actions: &[(bool, Action)], ends: (TcpStream, TcpStream)) -> Vec<Seen> {
    let mut ends = [ends.0, ends.1];
    let mut closed = [false; 2];
    let mut seen = Vec::new();
    for (number, &(by_first, action)) in actions.iter().enumerate() {
        let actor = usize::from(!by_first);
        let [first, second] = &mut ends;
        let (own, other) = if by_first { (first, second) } else { (second, first) };
        seen.push(match action {
            Action::Write(length) if !closed[actor] => {
                let data = pattern(number as u64, length);
                let mut heard = vec![0; length];
                let (written, read) =
                    tokio::join!(own.write_all(&data), other.read_exact(&mut heard));
                written.unwrap();
                read.unwrap();
                assert!(heard == data);
                Seen::Data(length)
            }
            Action::Close if !closed[actor] => {
                closed[actor] = true;
                own.shutdown().await.unwrap();
                assert_eq!(other.read(&mut [0]).await.unwrap(), 0);
                Seen::End
            }
            Action::Reset if closed != [true; 2] => {
                own.set_zero_linger().unwrap();
                let [first, second] = ends;
                let (own, mut other) = if by_first { (first, second) } else { (second, first) };
                drop(own);
                seen.push(reset(&mut other, closed[actor]).await);
                return seen;
            }
            _ => Seen::Nothing,
        });
    }
    seen
}

/// Returns how `stream` shows a reset.
async fn reset(stream: &mut TcpStream, was_ended: bool) -> Seen {
    if was_ended {
        stream.ready(Interest::ERROR).await.unwrap();
        return Seen::Reset;
    }
    match stream.read(&mut [0]).await {
        Ok(0) => Seen::End,
        Ok(more) => Seen::Data(more),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            Seen::Reset
        }
    }
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => prop_oneof![1..2_000_usize, 1..200_000_usize].prop_map(Action::Write),
        2 => Just(Action::Close),
        1 => Just(Action::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_carried_connection_is_like_a_direct_one(
        actions in prop::collection::vec((any::<bool>(), action()), 1..12)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (direct, carried) = runtime.block_on(within(async {
            let network = Network::new();
            let (listener, to) = server().await;
            let program = TcpStream::connect(to).await.unwrap();
            let direct = run(&actions, (program, listener.accept().await.unwrap().0)).await;
            let program = network.program(to).await;
            let carried = run(&actions, (program, listener.accept().await.unwrap().0)).await;
            (direct, carried)
        }));
        prop_assert_eq!(direct, carried);
    }
}
