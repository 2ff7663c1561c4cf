//! Tests of the crates' dependencies: protocol crates use no sockets and no runtime, and published
//! crates can be published.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The state machines, which take packets and the time as arguments.
const PROTOCOL: [&str; 7] = ["types", "wire", "recovery", "stack", "rrtp", "link", "basestation"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {}: {error}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

/// A member of the workspace, and the members that it depends on.
struct Member {
    is_published: bool,
    dependencies: Vec<Dependency>,
}

struct Dependency {
    name: String,
    is_for_tests: bool,
    has_version: bool,
}

fn packages() -> Vec<Value> {
    let json = cargo(&["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"]);
    let mut metadata: Value = serde_json::from_str(&json).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

fn members() -> BTreeMap<String, Member> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let dependency = |value: &Value| {
        value["path"].as_str()?;
        Some(Dependency {
            name: text(&value["name"]),
            is_for_tests: value["kind"] == "dev",
            has_version: value["req"] != "*",
        })
    };
    let member = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap();
        let dependencies = dependencies.iter().filter_map(dependency).collect();
        (
            text(&package["name"]),
            Member { is_published: package["publish"].is_null(), dependencies },
        )
    };
    packages().iter().map(member).collect()
}

#[test]
fn protocol_crates_depend_on_no_runtime_and_no_system_call() {
    // The simulator, which runs whole networks in virtual time, must not depend on them either.
    for name in PROTOCOL.into_iter().chain(["sim"]) {
        let package = format!("airtcp-{name}");
        let how = "tree --offline --locked -e normal --prefix none -p";
        let tree = cargo(&how.split(' ').chain([&*package]).collect::<Vec<_>>());
        let crates: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(crates.contains(&*package), "{tree}");
        for unwanted in ["tokio", "nix", "tun-rs"] {
            assert!(!crates.contains(unwanted), "{package} depends on {unwanted}");
        }
    }
}

#[test]
fn protocol_crates_and_the_simulator_have_the_same_lints() {
    let lints = |name| fs::read_to_string(root().join(format!("crates/{name}/clippy.toml")));
    let first = lints(PROTOCOL[0]).unwrap();
    assert!(first.contains("std::time::Instant::now"));
    for name in PROTOCOL.into_iter().chain(["sim"]) {
        assert!(lints(name).is_ok_and(|text| text == first), "crates/{name}/clippy.toml differs");
    }
}

#[test]
fn published_crates_depend_on_published_crates() {
    let members = members();
    assert!(members["airtcp"].is_published && !members["airtcp-packetdrill"].is_published);
    for (name, member) in members.iter().filter(|(_, member)| member.is_published) {
        for dependency in &member.dependencies {
            let on = &dependency.name;
            if dependency.is_for_tests {
                // Cargo leaves the dependency out of the package.
                assert!(!dependency.has_version, "{name}: give {on} a path alone for tests");
            } else {
                assert!(dependency.has_version, "{name}: give {on} a version");
                assert!(members[on].is_published, "{name} depends on {on}, which is not published");
            }
        }
    }
}

/// Published crates have the metadata that crates.io shows and requires.
#[test]
fn published_crates_describe_themselves() {
    let repository = "https://github.com/airtcp/airtcp";
    for package in packages().iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().unwrap();
        let text = |key: &str| package[key].as_str().unwrap_or_else(|| panic!("{name}: no {key}"));
        let count = |key: &str| package[key].as_array().unwrap().len();
        assert!(!text("description").is_empty(), "{name}");
        assert_eq!(text("repository"), repository, "{name}");
        assert_eq!(text("license"), "MIT OR Apache-2.0", "{name}");
        assert!(!text("rust_version").is_empty(), "{name}");
        assert!((1..=5).contains(&count("keywords")), "{name}: one to five keywords");
        assert!((1..=5).contains(&count("categories")), "{name}: one to five categories");
        // README.md is in the package itself: a file from elsewhere would be copied into each
        // crate.
        let directory = Path::new(text("manifest_path")).parent().unwrap();
        let readme = fs::read_to_string(directory.join(text("readme"))).unwrap();
        assert_eq!(text("readme"), "README.md", "{name}");
        assert!(
            readme.contains(repository) || directory == root(),
            "{name}: README.md has no link"
        );
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(directory.join(licence).exists(), "{name}: no {licence}");
        }
    }
}

#[test]
fn the_debian_package_has_every_unit_and_its_settings() {
    let packages = packages();
    let package = packages.iter().find(|package| package["name"] == "airtcp-programs").unwrap();
    let deb = &package["metadata"]["deb"];
    let has =
        |list: &str, is: &dyn Fn(&Value) -> bool| deb[list].as_array().unwrap().iter().any(is);
    for entry in fs::read_dir(root().join("contrib")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_there = match name.rsplit_once('.') {
            Some((unit, "service")) => has("systemd-units", &|of| of["unit-name"] == unit),
            Some((_, "toml" | "env")) => {
                has("assets", &|of| of[0] == format!("contrib/{name}") && of[1] == "etc/airtcp/")
            }
            _ => name == "deb",
        };
        assert!(is_there, "contrib/{name} is not in [package.metadata.deb] of Cargo.toml");
    }
}

/// No crate depends on itself through its tests. With a cycle `cargo publish` has no order, and a
/// crate's tests build other crates with a second copy of it.
#[test]
fn no_crate_depends_on_itself_by_way_of_tests() {
    let mut members = members();
    while !members.is_empty() {
        let before = members.len();
        let names: BTreeSet<_> = members.keys().cloned().collect();
        members.retain(|_, member| member.dependencies.iter().any(|on| names.contains(&on.name)));
        assert!(members.len() < before, "a cycle among {:?}", names);
    }
}
