//! Stacks on threads of their own.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use airtcp_device::{Memory, memory};
use airtcp_stack::host::HostConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::{Stack, StackThread};
use super::{addr, start, within};

/// Returns a stack on a thread, and the other end of its device.
fn on_thread() -> (StackThread, Memory) {
    let (device, other) = memory::pair(1500, 128);
    let config = HostConfig::new(["10.0.0.1/24".parse().unwrap()]);
    let started = StackThread::start("server", move || Stack::new(device, config));
    (started.unwrap(), other)
}

#[tokio::test]
async fn tasks_run_on_the_thread_of_the_stack_and_sockets_work_elsewhere_too() {
    let (server, other) = on_thread();
    let listener = server.stack().listen(addr("10.0.0.1:7"), 1).unwrap();
    let serving = server.spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await?;
        writer.shutdown().await?;
        io::Result::Ok(thread::current().name().map(str::to_owned))
    });
    let client = start(other, ["10.0.0.2/24", "fd00::2/64"]);
    let mut stream = within(client.connect(addr("10.0.0.1:7"))).await.unwrap();
    let (mut reader, mut writer) = stream.split();
    let sending = async {
        writer.write_all(&[7; 300_000]).await?;
        writer.shutdown().await
    };
    let mut echoed = Vec::new();
    within(async { tokio::try_join!(sending, reader.read_to_end(&mut echoed)) }).await.unwrap();
    assert!(echoed == [7; 300_000]);
    assert_eq!(serving.await.unwrap().unwrap().as_deref(), Some("server"));

    let listener = server.stack().listen(addr("10.0.0.1:8"), 1).unwrap();
    let connecting = client.connect(addr("10.0.0.1:8"));
    let (_client, accepted) = within(async { tokio::join!(connecting, listener.accept()) }).await;
    accepted.unwrap();
    within(server.stack().shutdown()).await;
}

#[tokio::test]
async fn dropping_it_ends_its_tasks_and_the_stack() {
    let (server, _other) = on_thread();
    let stack = server.stack().clone();
    let listener = stack.listen(addr("10.0.0.1:7"), 1).unwrap();
    let waiting = server.spawn(async move { listener.accept().await.map(drop) });
    drop(server);
    assert_eq!(within(stack.closed()).await.kind(), ErrorKind::NotConnected);
    assert!(within(waiting).await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn joining_it_waits_until_its_tasks_are_dropped() {
    struct Slow(Arc<AtomicBool>);
    impl Drop for Slow {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(50));
            self.0.store(true, Relaxed);
        }
    }
    let (server, _other) = on_thread();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let slow = Slow(is_dropped.clone());
    let (stack, waiting) = (server.stack().clone(), Arc::new(Notify::new()));
    let begun = waiting.clone();
    server.spawn(async move {
        let _slow = slow;
        begun.notify_one();
        std::future::pending::<()>().await;
    });
    within(waiting.notified()).await;
    server.join();
    assert!(is_dropped.load(Relaxed));
    assert_eq!(within(stack.closed()).await.kind(), ErrorKind::NotConnected);
}

/// The runtime may end even before the first turn of the driver.
#[test]
fn a_stack_ends_with_its_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (device, _other) = memory::pair(1500, 128);
    let stack = {
        let _entered = runtime.enter();
        Stack::new(device, HostConfig::new(["10.0.0.1/24".parse().unwrap()])).unwrap()
    };
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = other.block_on(async { within(stack.closed()).await });
    assert_eq!(error.kind(), ErrorKind::NotConnected);
}

#[test]
fn a_stack_that_does_not_start_says_why() {
    let refused = StackThread::start("server", || Err(io::Error::from(ErrorKind::OutOfMemory)));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfMemory);
}
