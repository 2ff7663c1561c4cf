//! Chromium and its driver.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use url::{ParseError, Url};

/// A running driver. Dropping it ends the driver and the browser.
pub(crate) struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the driver on a free port, and returns it with its URL.
pub(crate) fn driver() -> (Driver, String) {
    let mut command = Command::new("chromedriver");
    command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("apt-get install chromium chromium-driver");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let driver = Driver(child);
    let port = lines.map_while(Result::ok).find_map(|line| {
        let port = line.split_once("successfully on port ")?.1.trim_end_matches('.').to_owned();
        Some(port)
    });
    (driver, format!("http://127.0.0.1:{}", port.expect("chromedriver names its port")))
}

pub(crate) async fn open(driver: &str) -> Client {
    let options = json!({
        "goog:chromeOptions": { "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] },
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
    });
    let Value::Object(options) = options else { unreachable!() };
    ClientBuilder::new(HttpConnector::new()).capabilities(options).connect(driver).await.unwrap()
}

/// A command that only Chromium supports.
#[derive(Debug)]
struct Chrome(&'static str, Value);

impl WebDriverCompatibleCommand for Chrome {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.0))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.1.to_string()))
    }
}

pub(crate) async fn log(client: &Client, kind: &str) -> Vec<Value> {
    let log = client.issue_cmd(Chrome("se/log", json!({ "type": kind }))).await.unwrap();
    log.as_array().unwrap().clone()
}

/// The URLs that the page requested.
pub(crate) async fn requests(client: &Client) -> Vec<String> {
    let mut urls = Vec::new();
    for entry in log(client, "performance").await {
        let message: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
        if message["message"]["method"] == "Network.requestWillBeSent" {
            urls.push(message["message"]["params"]["request"]["url"].as_str().unwrap().to_owned());
        }
    }
    urls
}

pub(crate) async fn run(client: &Client, script: &str) -> Value {
    client.execute(script, Vec::new()).await.unwrap()
}

pub(crate) async fn screenshot(client: &Client, name: &str) {
    let Some(directory) = std::env::var_os("AIRTCP_SCREENSHOTS") else { return };
    let picture = client.screenshot().await.unwrap();
    fs::create_dir_all(&directory).unwrap();
    fs::write(Path::new(&directory).join(name), picture).unwrap();
}

/// Sends a command of the developer tools.
async fn issue(client: &Client, command: &str, parameters: Value) {
    let command = json!({ "cmd": command, "params": parameters });
    client.issue_cmd(Chrome("goog/cdp/execute", command)).await.unwrap();
}

/// Makes the page a telephone's with a width of 400 pixels.
pub(crate) async fn narrow(client: &Client) {
    let metrics = json!({ "width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": true });
    issue(client, "Emulation.setDeviceMetricsOverride", metrics).await;
}
