//! Shows the page of `airtcp report` in Chromium: it loads nothing, logs nothing, draws the points
//! of the records, and zooms.
//!
//! `AIRTCP` is the program to test. With `AIRTCP_SCREENSHOTS=DIR`, screenshots are saved in that
//! directory.

mod chrome;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use chrome::{driver, log, narrow, open, requests, run, screenshot};
use fantoccini::Client;
use serde_json::{Value, json};
use url::Url;

/// Makes a directory with results of real runs, and returns the URL of their page.
fn results(directory: &Path) -> Url {
    let airtcp = std::env::var("AIRTCP").expect("AIRTCP is the program to test");
    let shell = |line: &str| {
        let line = line.replace("airtcp ", &format!("{airtcp} "));
        let done = Command::new("sh").args(["-ec", &line]).current_dir(directory).output().unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    };
    shell("airtcp sim init > scenario.toml");
    shell("airtcp sim run scenario.toml --set duration=10s --seeds 3 --out run --trace run/trace");
    shell(
        "airtcp compare weak-4g --with rack/cubic,le/westwood,rack/bbr3/spike --seeds 2 --out run",
    );
    shell("airtcp lab run self/half-duplex --seeds 2 --out run/lab");
    fs::write(
        directory.join("run/hostile.json"),
        r#"{"<img src=x onerror=alert(1)>": "</script><script>document.title = 'taken'</script>"}"#,
    )
    .unwrap();
    shell("airtcp report run -o report.html --title 'A <b>report</b>'");
    Url::from_file_path(directory.join("report.html")).unwrap()
}

/// The number of lines of a JSON Lines file that satisfy the condition.
fn count(path: &Path, is: impl Fn(&Value) -> bool) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(is).count() as u64
}

/// Scrolls to the first chart with this title, waits until it is drawn, and returns its index among
/// the charts.
async fn chart(client: &Client, title: &str) -> u64 {
    let found = run(
        client,
        &format!(
            "const all = [...document.querySelectorAll('figure.chart')];
             const at = all.findIndex((one) => one.querySelector('figcaption').textContent === '{title}');
             all[at].scrollIntoView({{ block: 'center' }});
             return at;"
        ),
    )
    .await;
    let number = found.as_u64().unwrap();
    for _ in 0..100 {
        let paths = format!(
            "return document.querySelectorAll('figure.chart')[{number}].querySelectorAll('path').length"
        );
        if run(client, &paths).await.as_u64() > Some(0) {
            return number;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{title} is not drawn");
}

/// The number of points drawn for each series of a chart.
async fn points(client: &Client, chart: u64) -> Vec<u64> {
    let script = format!(
        "return [...document.querySelectorAll('figure.chart')[{chart}].querySelectorAll('path')].map((path) => +path.dataset.points)"
    );
    serde_json::from_value(run(client, &script).await).unwrap()
}

#[tokio::test]
async fn the_page_draws_the_records_and_zooms_and_loads_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let page = results(directory.path());
    let (_driver, address) = driver();
    let client = open(&address).await;
    client.set_window_size(1280, 900).await.unwrap();
    client.goto(page.as_str()).await.unwrap();
    screenshot(&client, "report-1280.png").await;

    // A hostile record is shown as text.
    assert_eq!(client.title().await.unwrap(), "A <b>report</b>");
    assert_eq!(
        run(&client, "return document.querySelectorAll('main img').length").await,
        json!(count_pictures(directory.path()))
    );

    // A series has as many points as the records.
    let first = chart(&client, "Congestion window").await;
    let is_first =
        |state: &Value| state["flow"] == "old" && state["copy"] == 0 && state["host"] == "left-1";
    let states = count(&directory.path().join("run/states.jsonl"), |state| {
        is_first(state) && state["cwnd"].is_u64()
    });
    let whole = points(&client, first).await;
    assert_eq!(whole[0], states);
    screenshot(&client, "states-1280.png").await;

    // Dragging across a chart zooms it and the charts of its group.
    let drag = format!(
        "const svg = document.querySelectorAll('figure.chart')[{first}].querySelector('svg');
         const box = svg.getBoundingClientRect();
         const at = (share) => ({{ clientX: box.left + box.width * share, clientY: box.top + 50, button: 0, bubbles: true }});
         svg.dispatchEvent(new PointerEvent('pointerdown', at(0.4)));
         svg.dispatchEvent(new PointerEvent('pointermove', at(0.5)));
         svg.dispatchEvent(new PointerEvent('pointerup', at(0.5)));"
    );
    run(&client, &drag).await;
    let zoomed = points(&client, first).await;
    assert!(zoomed[0] < whole[0] / 4 && zoomed[0] > 2, "{zoomed:?} of {whole:?}");
    let range = |chart: u64| {
        format!("return document.querySelectorAll('figure.chart')[{chart}].dataset.from")
    };
    let rtt = chart(&client, "Smoothed round-trip time").await;
    assert_eq!(run(&client, &range(rtt)).await, run(&client, &range(first)).await);
    let reset = format!(
        "document.querySelectorAll('figure.chart')[{first}].querySelector('[aria-label=\"Show the whole range\"]').click()"
    );
    run(&client, &reset).await;
    assert_eq!(points(&client, first).await, whole);

    // The pointer shows values; the legend hides a series.
    let hover = format!(
        "const figure = document.querySelectorAll('figure.chart')[{first}];
         const box = figure.querySelector('svg').getBoundingClientRect();
         figure.querySelector('svg').dispatchEvent(new PointerEvent('pointermove', {{ clientX: box.left + box.width / 2, clientY: box.top + 50 }}));
         return figure.querySelector('output').textContent;"
    );
    let shown = run(&client, &hover).await;
    assert!(shown.as_str().unwrap().contains("old 1 (left-1)"), "{shown}");
    let hide = format!(
        "const figure = document.querySelectorAll('figure.chart')[{first}];
         figure.querySelector('.legend button').click();
         return figure.querySelector('path').getAttribute('d');"
    );
    assert_eq!(run(&client, &hide).await, json!(""));

    let graph = chart(&client, "Time-sequence graph").await;
    assert!(points(&client, graph).await.iter().sum::<u64>() > 1_000);
    screenshot(&client, "sequence-1280.png").await;
    run(&client, "document.querySelector('.theme').click()").await;
    screenshot(&client, "sequence-dark-1280.png").await;

    // On a telephone nothing is wider than the screen.
    narrow(&client).await;
    client.goto(page.as_str()).await.unwrap();
    let width = run(&client, "return document.documentElement.scrollWidth").await;
    assert!(width.as_u64().unwrap() <= 400, "{width}");
    screenshot(&client, "report-400.png").await;
    chart(&client, "Time-sequence graph").await;
    screenshot(&client, "sequence-400.png").await;

    assert_eq!(log(&client, "browser").await, Vec::<Value>::new(), "the console is empty");
    let requests = requests(&client).await;
    let is_own = |url: &&String| **url == page.as_str() || url.starts_with("data:");
    assert!(!requests.is_empty() && requests.iter().all(|url| is_own(&url)), "{requests:?}");
    client.close().await.unwrap();
}

/// The number of pictures of the comparison and the experiment.
fn count_pictures(directory: &Path) -> usize {
    let summary =
        fs::read_to_string(directory.join("run/lab/self/half-duplex/summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    1 + summary["pictures"].as_array().unwrap().len()
}
