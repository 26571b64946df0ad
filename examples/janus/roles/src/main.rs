//! The client and the collector of Janus, as programs: what they do is done by Janus's own crates.
//!
//! `janus-roles upload` sends votes: numbers of buckets, one a line, from the standard input.
//! `janus-roles collect` gets a batch, for a task with batches of times that of the interval that
//! follows: its beginning and its length in seconds. It prints the number of reports and the sums.
//!
//! What the task is stands in variables of the environment: those of `client.env` and
//! `collector.env`, which `turnout task new --janus client,collector` writes.

use std::{
    env, io,
    time::{Duration as Pause, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use janus_client::{Client, ConfiguredVdaf};
use janus_collector::{AuthenticationToken, Collector, Error, HpkeKeypair, PollResult};
use janus_core::{hpke::HpkePrivateKey, initialize_rustls};
use janus_messages::{
    Duration, HpkeConfig, Interval, Query, TaskConfiguration, TaskId, Time, VdafConfig,
    batch_mode::BatchMode, codec::Decode,
};
use prio::vdaf::prio3::Prio3Histogram;

/// How long the collector waits, and between two questions.
const SECONDS: u64 = 120;
const PAUSE: Pause = Pause::from_millis(500);

/// A task, as the variables say it.
struct Task {
    id: TaskId,
    config: TaskConfiguration,
    vdaf: ConfiguredVdaf<Prio3Histogram>,
}

impl Task {
    fn read() -> Result<Self> {
        let config = TaskConfiguration::get_decoded(&variable("TASK_CONFIG")?)?;
        let VdafConfig::Prio3Histogram { length, chunk_length } = *config.vdaf_config() else {
            bail!("TASK_CONFIG must be of a task with Prio3Histogram");
        };
        Ok(Self {
            id: TaskId::get_decoded(&variable("TASK_ID")?)?,
            config,
            vdaf: ConfiguredVdaf::prio3_histogram(length, chunk_length)?,
        })
    }

    fn time(&self, seconds: u64) -> Time {
        Time::from_seconds_since_epoch(seconds, self.config.time_precision())
    }
}

/// Reads a variable of bytes, in base64url.
fn variable(name: &str) -> Result<Vec<u8>> {
    let text = env::var(name).with_context(|| format!("the variable {name}"))?;
    URL_SAFE_NO_PAD.decode(text).with_context(|| format!("the variable {name}"))
}

async fn upload(task: Task) -> Result<()> {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let now = task.time(seconds.as_secs());
    let votes = io::stdin()
        .lines()
        .map(|line| Ok((line?.trim().parse::<usize>()?, now)))
        .collect::<Result<Vec<_>>>()?;
    let client = Client::builder(
        task.id,
        task.config.leader_aggregator_endpoint().clone(),
        task.config.helper_aggregator_endpoint().clone(),
        *task.config.time_precision(),
        task.vdaf,
    )
    .with_task_info(task.config.task_info().to_vec())
    .with_min_batch_size(task.config.min_batch_size())
    .with_batch_config(task.config.batch_config().clone())
    .with_task_interval(task.config.task_interval())
    .build()
    .await?;
    client.upload_with_time(&votes).await?;
    println!("accepted: {}", votes.len());
    Ok(())
}

async fn collect<B: BatchMode>(task: Task, query: Query<B>) -> Result<()> {
    let key = HpkeKeypair::new(
        HpkeConfig::get_decoded(&variable("HPKE_CONFIG")?)?,
        HpkePrivateKey::new(variable("HPKE_PRIVATE_KEY")?),
    );
    let token = env::var("AUTHORIZATION_BEARER_TOKEN").context("AUTHORIZATION_BEARER_TOKEN")?;
    let token = AuthenticationToken::new_bearer_token_from_string(token)?;
    let collector = Collector::builder(task.id, token, key, task.vdaf)
        .with_task_configuration(task.config)
        .build()?;
    let end = Instant::now() + Pause::from_secs(SECONDS);
    let job = loop {
        match collector.collection(query.clone(), &()).start().await {
            // A leader of Janus refuses as long as it has no batch.
            Err(Error::Http(answer)) if answer.status().as_u16() == 400 && Instant::now() < end => {
                tokio::time::sleep(PAUSE).await;
            }
            started => break started?,
        }
    };
    while Instant::now() < end {
        if let PollResult::CollectionResult(found) = collector.poll_once(&job).await? {
            println!("reports: {}", found.report_count());
            println!("sums: {:?}", found.aggregate_result());
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("there was no batch within {SECONDS} seconds")
}

#[tokio::main]
async fn main() -> Result<()> {
    initialize_rustls();
    let task = Task::read()?;
    let given: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = given.iter().map(String::as_str).collect();
    match words[..] {
        ["upload"] => upload(task).await,
        ["collect"] => collect(task, Query::new_leader_selected()).await,
        ["collect", start, seconds] => {
            let length = Duration::from_seconds(seconds.parse()?, task.config.time_precision());
            let interval = Interval::new(task.time(start.parse()?), length)?;
            collect(task, Query::new_time_interval(interval)).await
        }
        _ => bail!("expected upload, collect, or collect START SECONDS, got {given:?}"),
    }
}
