//! What all parties of a task have agreed on: it enters the encryption of every share.

use super::codec::{Input, Message, Wire};
use super::error::{Error, Result};
use super::words::{BatchMode, VERSION};

/// The bytes of a task ID.
pub const TASK_ID_BYTES: usize = 32;

/// A span of time, in units of the task's time precision: `start` belongs to it, `start + duration` does
/// not, and is no overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    start: u64,
    duration: u64,
}

impl Interval {
    /// The interval of so many units from `start` on.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if its end is beyond the last time.
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

    /// Its first time.
    #[must_use]
    pub fn start(self) -> u64 {
        self.start
    }

    /// How many times belong to it.
    #[must_use]
    pub fn duration(self) -> u64 {
        self.duration
    }

    /// The first time after it.
    #[must_use]
    pub fn end(self) -> u64 {
        self.start + self.duration
    }

    /// Whether a time belongs to it.
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

/// An extension of a report, of a task or of a job: a number, and bytes that the number gives a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Which extension.
    pub extension_type: u16,
    /// Its bytes.
    pub extension_data: &'a [u8],
}

layout!(Extension<'a>: extension_type, extension_data as Opaque16);

/// Whether extensions stand in the order that the draft wants, which also lets none stand twice.
#[must_use]
pub fn increasing(extensions: &[Extension<'_>]) -> bool {
    extensions.is_sorted_by(|one, next| one.extension_type < next.extension_type)
}

/// The parameters of a task that are in all parties' hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskConfiguration<'a> {
    /// What tells apart two tasks that are otherwise the same.
    pub task_info: &'a [u8],
    /// The URL of the leader, byte by byte as all parties write it.
    pub leader_aggregator_endpoint: &'a [u8],
    /// The URL of the helper, likewise.
    pub helper_aggregator_endpoint: &'a [u8],
    /// The seconds of a unit of time.
    pub time_precision: u64,
    /// The fewest reports of a batch.
    pub min_batch_size: u64,
    /// How reports are put into batches.
    pub batch_mode: BatchMode,
    /// Parameters of the batch mode; those of today have none.
    pub batch_config: &'a [u8],
    /// The number of the VDAF.
    pub vdaf_type: u32,
    /// The parameters of the VDAF, an encoded [`VdafConfiguration`](super::VdafConfiguration).
    pub vdaf_configuration: &'a [u8],
    /// Extensions in the order of their types.
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

/// A task: its ID and its configuration, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    id: [u8; TASK_ID_BYTES],
    configuration: Vec<u8>,
    interval: Option<Interval>,
}

impl Task {
    /// The task of this ID with this encoded [`TaskConfiguration`].
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if that is none; [`Error::Value`] if nobody here can take part in it: an unknown
    /// extension, a time precision of zero, or a URL that is not ASCII.
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

    /// As [`new`](Self::new), with an interval in place of extensions.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if a parameter has no encoding or is refused by [`new`](Self::new).
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
    /// None: it was read before.
    pub fn parameters(&self) -> Result<TaskConfiguration<'_>> {
        TaskConfiguration::decode(&self.configuration)
    }

    /// From when to when reports belong to it, if that is limited.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        self.interval
    }

    /// What enters the proofs of its reports: the version and its ID.
    #[must_use]
    pub fn context(&self) -> Vec<u8> {
        [VERSION.as_bytes(), &self.id].concat()
    }
}

fn value(what: &'static str, expected: &'static str, given: String) -> Error {
    Error::Value { what, expected, given }
}
