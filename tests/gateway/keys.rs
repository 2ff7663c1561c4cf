//! `airtcp gateway keygen` and `pubkey`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use super::{Outcome, airtcp};

/// Creates a private key in a file; returns its public key.
pub(super) fn generate(path: &Path) -> Outcome<String> {
    let output = airtcp(&["gateway", "keygen", "--out", path.to_str().ok_or("a path in UTF-8")?])
        .output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_private_key_is_its_owners_and_is_not_overwritten() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("a.key");
    let name = path.to_str().ok_or("a path in UTF-8")?;
    let public = generate(&path)?;
    assert_eq!(public.len(), 44);
    assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    let private = fs::read_to_string(&path)?;
    let again = airtcp(&["gateway", "keygen", "--out", name]).output()?;
    assert_eq!(again.status.code(), Some(1));
    assert!(
        stderr(&again).contains("a.key: File exists; choose another name"),
        "{}",
        stderr(&again)
    );
    assert_eq!(fs::read_to_string(&path)?, private);

    let of_file = airtcp(&["gateway", "pubkey", name]).output()?;
    assert_eq!(stderr(&of_file), "");
    assert_eq!(of_file.stdout, format!("{public}\n").into_bytes());
    let mut command = airtcp(&["gateway", "pubkey"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("it is piped")?.write_all(private.as_bytes())?;
    assert_eq!(child.wait_with_output()?.stdout, format!("{public}\n").into_bytes());

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    let open = airtcp(&["gateway", "pubkey", name]).output()?;
    assert!(
        open.status.success() && stderr(&open).contains("type: chmod 600"),
        "{}",
        stderr(&open)
    );
    Ok(())
}

#[test]
fn a_wrong_key_is_reported_with_what_to_do() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("a.key");
    fs::write(&path, "secret\n")?;
    let name = path.to_str().ok_or("a path in UTF-8")?;
    let public = generate(&directory.path().join("b.key"))?;
    let far = |key: &str| airtcp(&["gateway", "far", "--key", key, "--peer", &public]).output();
    let wrong = far(name)?;
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        stderr(&wrong).contains("a.key: ") && !stderr(&wrong).contains("secret"),
        "{}",
        stderr(&wrong)
    );
    let missing = far("/no/such/key")?;
    assert!(stderr(&missing).contains("airtcp gateway keygen --out"), "{}", stderr(&missing));
    for line in [&["gateway", "far"][..], &["gateway", "near", "--key", name, "--peer", &public]] {
        let output = airtcp(line).output()?;
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("for example: airtcp gateway "), "{}", stderr(&output));
    }
    Ok(())
}
