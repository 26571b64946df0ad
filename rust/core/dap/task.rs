//! What all parties of a task agree on. It enters the encryption of every share.

use super::codec::{Input, Message, Wire};
use super::error::{Error, Result};
use super::words::{BatchMode, VERSION};

/// The number of bytes of a task ID.
pub const TASK_ID_BYTES: usize = 32;

/// A span of time, in units of the task's time precision. It contains `start`, but not `start +
/// duration`, which does not overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    start: u64,
    duration: u64,
}

impl Interval {
    /// Makes the interval of `duration` units from `start` on.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if it ends after the largest time.
    pub fn new(start: u64, duration: u64) -> Result<Self> {
        if start.checked_add(duration).is_none() {
            return Err(Error::Value {
                what: "an interval",
                expected: "one that ends before 2^64",
                given: format!("start {start} and duration {duration}"),
            });
        }
        Ok(Self { start, duration })
    }

    /// Its first unit of time.
    #[must_use]
    pub fn start(self) -> u64 {
        self.start
    }

    /// How many units of time it contains.
    #[must_use]
    pub fn duration(self) -> u64 {
        self.duration
    }

    /// The first unit of time after it.
    #[must_use]
    pub fn end(self) -> u64 {
        self.start + self.duration
    }

    /// Tells whether it contains a time.
    #[must_use]
    pub fn holds(self, time: u64) -> bool {
        (self.start..self.end()).contains(&time)
    }
}

impl Wire<'_> for Interval {
    fn read(input: &mut Input<'_>) -> Result<Self> {
        let (start, duration) = (Wire::read(input)?, Wire::read(input)?);
        Self::new(start, duration).map_err(|_| input.malformed("an interval ends after 2^64"))
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        self.start.write(out)?;
        self.duration.write(out)
    }
}

impl Message<'_> for Interval {
    const NAME: &'static str = "Interval";
}

/// An extension of a report, a task or a job: a number, and bytes with a meaning that the number
/// decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension<'a> {
    /// The number of the extension.
    pub extension_type: u16,
    /// Its bytes.
    pub extension_data: &'a [u8],
}

layout!(Extension<'a>: extension_type, extension_data as Opaque16);

/// Tells whether extensions have the order of the draft, in which none can be duplicated.
#[must_use]
pub fn increasing(extensions: &[Extension<'_>]) -> bool {
    extensions.is_sorted_by(|one, next| one.extension_type < next.extension_type)
}

/// The parameters of a task that all parties know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskConfiguration<'a> {
    /// Bytes that distinguish two tasks that are otherwise equal.
    pub task_info: &'a [u8],
    /// The URL of the leader. All parties must write it with the same bytes.
    pub leader_aggregator_endpoint: &'a [u8],
    /// The URL of the helper. All parties must write it with the same bytes.
    pub helper_aggregator_endpoint: &'a [u8],
    /// The number of seconds in a unit of time.
    pub time_precision: u64,
    /// The smallest number of reports of a batch.
    pub min_batch_size: u64,
    /// How reports are assigned to batches.
    pub batch_mode: BatchMode,
    /// Parameters of the batch mode; present modes have none.
    pub batch_config: &'a [u8],
    /// The number of the VDAF.
    pub vdaf_type: u32,
    /// The parameters of the VDAF, an encoded [`VdafConfiguration`](super::VdafConfiguration).
    pub vdaf_configuration: &'a [u8],
    /// Extensions, ordered by their types.
    pub extensions: Vec<Extension<'a>>,
}

layout!(
    TaskConfiguration<'a>:
    task_info as Opaque8,
    leader_aggregator_endpoint as Filled16,
    helper_aggregator_endpoint as Filled16,
    time_precision,
    min_batch_size,
    batch_mode,
    batch_config as Opaque16,
    vdaf_type,
    vdaf_configuration as Opaque16,
    extensions as List16,
);

/// The extension by which a task has a beginning and an end.
const TASK_INTERVAL: u16 = 1;

/// A task: its ID and its checked configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    id: [u8; TASK_ID_BYTES],
    configuration: Vec<u8>,
    interval: Option<Interval>,
}

impl Task {
    /// Makes the task with this ID and this encoded [`TaskConfiguration`].
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the bytes are not a configuration; [`Error::Value`] if this crate
    /// cannot take part in the task: an unknown extension, a time precision of zero, or a URL that
    /// is not ASCII.
    pub fn new(id: [u8; TASK_ID_BYTES], configuration: &[u8]) -> Result<Self> {
        let read = TaskConfiguration::decode(configuration)?;
        let mut interval = None;
        for extension in &read.extensions {
            if extension.extension_type != TASK_INTERVAL {
                let given = extension.extension_type.to_string();
                return Err(value("the type of a task extension", "1 (task_interval)", given));
            }
            interval = Some(Interval::decode(extension.extension_data)?);
        }
        if !increasing(&read.extensions) {
            let given = "an extension twice".to_owned();
            return Err(value("the extensions of a task", "in increasing order", given));
        }
        if read.time_precision == 0 {
            let given = read.time_precision.to_string();
            return Err(value("the time precision of a task", "at least one second", given));
        }
        for url in [read.leader_aggregator_endpoint, read.helper_aggregator_endpoint] {
            if !url.iter().all(u8::is_ascii_graphic) {
                let given = String::from_utf8_lossy(url).into_owned();
                return Err(value("the URL of an aggregator", "visible ASCII characters", given));
            }
        }
        if !read.batch_config.is_empty() {
            let given = format!("{} bytes", read.batch_config.len());
            return Err(value("the configuration of a batch mode", "empty", given));
        }
        Ok(Self { id, configuration: configuration.to_vec(), interval })
    }

    /// Like [`new`](Self::new), with an interval instead of extensions.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if a parameter has no encoding or [`new`](Self::new) refuses it.
    pub fn of(
        id: [u8; TASK_ID_BYTES],
        configuration: TaskConfiguration<'_>,
        interval: Option<Interval>,
    ) -> Result<Self> {
        let encoded = interval.map(|interval| interval.encode()).transpose()?;
        let mut configuration = configuration;
        configuration.extensions = encoded
            .iter()
            .map(|data| Extension { extension_type: TASK_INTERVAL, extension_data: data })
            .collect();
        Self::new(id, &configuration.encode()?)
    }

    /// Its ID.
    #[must_use]
    pub fn id(&self) -> &[u8; TASK_ID_BYTES] {
        &self.id
    }

    /// Its encoded configuration.
    #[must_use]
    pub fn configuration(&self) -> &[u8] {
        &self.configuration
    }

    /// Its configuration.
    ///
    /// # Errors
    ///
    /// No error: the task was made from a valid configuration.
    pub fn parameters(&self) -> Result<TaskConfiguration<'_>> {
        TaskConfiguration::decode(&self.configuration)
    }

    /// The interval in which its reports must lie, if it has one.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        self.interval
    }

    /// The bytes that enter the proofs of its reports: the version and the task's ID.
    #[must_use]
    pub fn context(&self) -> Vec<u8> {
        [VERSION.as_bytes(), &self.id].concat()
    }
}

fn value(what: &'static str, expected: &'static str, given: String) -> Error {
    Error::Value { what, expected, given }
}
