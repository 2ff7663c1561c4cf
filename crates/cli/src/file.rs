//! Reads whole files with a size limit, and finds paths for new ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use airtcp_link::Trace;
use anyhow::{Context, anyhow, bail};

use crate::output::{self, Mistake};

/// The maximum size of a link's trace, in bytes: about ten million lines.
const LONGEST_TRACE: u64 = 128 << 20;

/// Reads a text file of at most `longest` bytes.
///
/// # Errors
/// As [`text`], and those of opening the file. They do not name the file.
pub(crate) fn read(path: &Path, longest: u64) -> anyhow::Result<String> {
    text(File::open(path)?, longest)
}

/// Reads all text of `reader`, at most `longest` bytes.
///
/// # Errors
/// Those of reading; the text is longer, or is not UTF-8.
pub(crate) fn text(reader: impl Read, longest: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    reader.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        bail!("larger than {} MiB", longest >> 20);
    }
    String::from_utf8(bytes).context("not UTF-8 text")
}

/// Checks that a file can be written at `path`. An existing file is not changed, and no new file
/// remains.
///
/// # Errors
/// As [`not_made`].
pub(crate) fn check_writable(path: &Path) -> anyhow::Result<()> {
    try_writing(path).map_err(|error| not_made(path, error))
}

/// Checks that a directory with files can be created at `path`, without creating it.
///
/// # Errors
/// Those of writing to the nearest existing parent directory.
pub(crate) fn check_directory(path: &Path) -> anyhow::Result<()> {
    let exists = |above: &&Path| above.as_os_str().is_empty() || above.exists();
    let above = path.ancestors().find(exists).unwrap_or(path);
    try_writing(&above.join(format!(".airtcp-{}", std::process::id())))
        .with_context(|| above.display().to_string())
}

fn try_writing(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    }
}

/// The directory of `--out`, for the results of one command.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates the directory, before the first run.
    ///
    /// # Errors
    /// Those of creating it; it has the file `results` already.
    pub(crate) fn new(directory: &Path, results: &str) -> anyhow::Result<Self> {
        let context = || format!("--out {}", directory.display());
        fs::create_dir_all(directory).with_context(context)?;
        let folder = Self(directory.to_owned());
        if folder.path(results).exists() {
            let what = format!("{} has results already: choose another", context());
            return Err(Mistake::new(what).into());
        }
        check_directory(directory).with_context(context)?;
        Ok(folder)
    }

    /// Returns the path of a file of the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        output::note(format_args!("wrote {}", path.display()));
        Ok(())
    }
}

/// Explains why a file cannot be created at `path`, without naming the file.
pub(crate) fn not_made(path: &Path, error: io::Error) -> anyhow::Error {
    match path.parent().filter(|above| error.kind() == ErrorKind::NotFound && !above.exists()) {
        Some(above) if !above.as_os_str().is_empty() => anyhow!(
            "the directory {} does not exist: create it, or choose another path",
            above.display()
        ),
        _ if error.kind() == ErrorKind::PermissionDenied => {
            anyhow!("{error}: choose a directory where you may write, or run this with sudo")
        }
        _ => error.into(),
    }
}

/// Returns whether a TOML file is an experiment and not a scenario.
pub(crate) fn is_experiment(text: &str) -> bool {
    let is_table = |line: &str| line.starts_with("[[axis]]") || line.starts_with("[scenario");
    text.lines().any(|line| is_table(line.trim_start()))
}

/// Returns position and text of a TOML error, as `:LINE:COLUMN: TEXT` to follow the name of the
/// file. An unknown name has a suggestion.
pub(crate) fn mistake(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let place = before.map_or(String::new(), |before| {
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!(":{}:{column}", before.matches('\n').count() + 1)
    });
    let what = error.message().trim();
    format!("{place}: {what}{}", airtcp_types::suggestion(what))
}

/// Reads a link's trace.
///
/// # Errors
/// The file is not a trace; the text does not name the file.
pub(crate) fn link_trace(path: &Path) -> Result<Trace, String> {
    let text = read(path, LONGEST_TRACE).map_err(|error| {
        let advice = "give a mahimahi trace: a file with a time in whole milliseconds on each line";
        output::explain(&output::if_missing(error, advice))
    })?;
    Trace::parse(&text).map_err(|error| error.to_string())
}

/// Creates `STEM` with `ending`, or `STEM-2` and so on if that exists, so that earlier results are
/// kept.
///
/// # Errors
/// Those of `make`, which fails with [`ErrorKind::AlreadyExists`] if the path exists.
pub(crate) fn make_new(
    stem: &str,
    ending: &str,
    make: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let mut number = 1_u64;
    loop {
        let path = match number {
            1 => PathBuf::from(format!("{stem}{ending}")),
            _ => PathBuf::from(format!("{stem}-{number}{ending}")),
        };
        match make(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_stay_and_new_ones_get_a_number() {
        let directory = tempfile::tempdir().unwrap();
        let stem = directory.path().join("a").display().to_string();
        let make = || make_new(&stem, ".svg", |path| File::create_new(path).map(drop)).unwrap();
        let names = [make(), make(), make()].map(|path| path.file_name().unwrap().to_owned());
        assert_eq!(names, ["a.svg", "a-2.svg", "a-3.svg"]);
        let nowhere = make_new("/no/such/place/a", "", |path| std::fs::create_dir(path));
        assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_check_leaves_everything_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.svg");
        check_writable(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "earlier").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        let nowhere = check_writable(&directory.path().join("b/a.svg")).unwrap_err().to_string();
        assert!(
            nowhere.contains("/b does not exist: create it, or choose another path"),
            "{nowhere}"
        );
        assert!(check_writable(directory.path()).is_err());
        check_directory(&directory.path().join("b/c")).unwrap();
        assert!(!directory.path().join("b").exists());
        assert!(check_directory(&path.join("c")).is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_keeps_earlier_results() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b");
        Folder::new(&path, "sim.json").unwrap().write("sim.json", "1").unwrap();
        Folder::new(&path, "compare.json").unwrap();
        let refused = Folder::new(&path, "sim.json").map(|_| ()).unwrap_err().to_string();
        assert!(refused.ends_with("has results already: choose another"), "{refused}");
        assert_eq!(fs::read_to_string(path.join("sim.json")).unwrap(), "1");
        assert!(Folder::new(&path.join("sim.json"), "a").is_err());
    }

    #[test]
    fn a_file_that_is_too_long_or_no_text_is_refused() {
        let why = |bytes: &[u8]| text(bytes, 1 << 20).map_err(|error| error.to_string());
        assert_eq!(why(b"1\n2\n"), Ok("1\n2\n".to_owned()));
        assert_eq!(why(&vec![b'1'; (1 << 20) + 1]), Err("larger than 1 MiB".to_owned()));
        assert_eq!(why(&[0xff]), Err("not UTF-8 text".to_owned()));
        let missing = link_trace(Path::new("/no/such/file")).unwrap_err();
        assert!(
            missing.starts_with("No such file or directory; give a mahimahi trace"),
            "{missing}"
        );
    }
}
