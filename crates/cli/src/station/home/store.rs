//! The file with the registrations.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airtcp_basestation::home::Snapshot;
use anyhow::{Context, anyhow};
use tokio::sync::{mpsc, watch};

use crate::file;

/// The maximum size of the file in bytes: that of 65,536 home addresses is below 16 MiB.
const LONGEST: u64 = 16 << 20;

/// The pause after a failure to write.
const PAUSE: Duration = Duration::from_secs(1);

/// Reads the file. Without a file there are no registrations yet.
///
/// # Errors
/// The file cannot be read, or does not have this format.
pub(super) fn read(path: &Path) -> anyhow::Result<Snapshot> {
    let name = path.display();
    if !path.try_exists().with_context(|| format!("reading {name}"))? {
        return Ok(Snapshot::default());
    }
    let text = file::read(path, LONGEST).with_context(|| format!("reading {name}"))?;
    serde_json::from_str(&text).map_err(|error| {
        anyhow!(
            "{name} is not a state of a home agent ({error}): restore it, or remove it; without it \
             mobiles are unreachable until they register again"
        )
    })
}

/// Writes the file in one step: after a crash it has the old or the new content. A part of the new
/// content may then be left in a file with `.new` at the end of its name, which is replaced.
///
/// # Errors
/// The directory does not exist, or the file cannot be written.
pub(super) fn write(path: &Path, snapshot: &Snapshot) -> anyhow::Result<()> {
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    let mut part = path.as_os_str().to_owned();
    part.push(".new");
    let write = || {
        match fs::remove_file(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        file.write_all(&serde_json::to_vec(snapshot)?)?;
        file.sync_all()?;
        fs::rename(&part, path)?;
        // The name is durable when the directory is.
        File::open(above)?.sync_all()
    };
    write()
        .map_err(|error| file::not_made(path, error))
        .with_context(|| format!("writing {}", path.display()))
}

/// Writes each change, or the latest of several, and reports its number. After a failure it tries
/// again: until then no registration takes effect.
pub(super) async fn keep(
    path: PathBuf,
    mut latest: watch::Receiver<Option<(u64, Snapshot)>>,
    written: mpsc::Sender<u64>,
) {
    while latest.changed().await.is_ok() {
        loop {
            let Some((number, snapshot)) = latest.borrow_and_update().clone() else { break };
            let path = path.clone();
            let done = tokio::task::spawn_blocking(move || write(&path, &snapshot)).await;
            match done {
                Ok(Ok(())) => {
                    if written.send(number).await.is_err() {
                        return;
                    }
                    break;
                }
                Ok(Err(error)) => {
                    tracing::warn!("{error:#}; no registration takes effect until this works");
                }
                Err(error) => tracing::warn!(%error, "the registrations were not written"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_basestation::home::Stored;

    use super::*;

    fn snapshot(identification: u64) -> Snapshot {
        let address = [192, 0, 2, 7].into();
        Snapshot { mobiles: vec![Stored { address, identification, registration: None }] }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_remains() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("home.json");
        assert_eq!(read(&path).unwrap(), Snapshot::default());
        for identification in [1, u64::MAX] {
            write(&path, &snapshot(identification)).unwrap();
            assert_eq!(read(&path).unwrap(), snapshot(identification));
            // What an interrupted write leaves, which the next one replaces.
            fs::write(directory.path().join("home.json.new"), "{").unwrap();
            assert_eq!(read(&path).unwrap(), snapshot(identification));
        }
        write(&path, &snapshot(2)).unwrap();
        assert_eq!(read(&path).unwrap(), snapshot(2));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_something_else_is_not_taken_for_an_empty_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("home.json");
        for text in ["", "{}", r#"{"mobiles": [{"address": "x"}]}"#] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("home.json") && error.contains("register again"), "{error}");
        }
        // What is below a file cannot be looked for.
        let error = read(&path.join("home.json")).unwrap_err();
        assert!(format!("{error:#}").contains("home.json/home.json"), "{error:#}");
        let error = write(&directory.path().join("no/home.json"), &snapshot(1)).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("does not exist: create it"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_written_when_the_disk_works_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("later/home.json");
        let (changes, latest) = watch::channel(None);
        let (written, mut stored) = mpsc::channel(1);
        let task = tokio::spawn(keep(path.clone(), latest, written));
        changes.send_replace(Some((1, snapshot(1))));
        tokio::time::sleep(PAUSE * 3).await;
        assert!(stored.try_recv().is_err());
        changes.send_replace(Some((2, snapshot(2))));
        fs::create_dir(path.parent().unwrap()).unwrap();
        assert_eq!(stored.recv().await, Some(2));
        assert_eq!(read(&path).unwrap(), snapshot(2));
        drop(changes);
        task.await.unwrap();
    }
}
