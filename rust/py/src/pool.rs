//! The thread pool, which survives a fork of the process.
//!
//! A forked child inherits the memory of rayon's pool but not its threads: work sent there would
//! wait forever. So each process finds a pool of its own, in a list keyed by process id. The number
//! of threads is rayon's default: the cores, or `RAYON_NUM_THREADS`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::OnceLock;

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{Failure, Result};

struct Node {
    process: u32,
    pool: ThreadPool,
    next: Next,
}

type Next = OnceLock<Box<Node>>;

static FIRST: Next = OnceLock::new();

/// Runs `job` on the pool of this process, without the interpreter lock.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    job: impl FnOnce() -> turnout_core::Result<T> + Send,
) -> Result<T> {
    let (mut job, mut result) = (Some(job), None);
    install(py, &mut || result = job.take().map(|job| job()))?;
    let missing = || Failure::Defect("the thread pool did not run the job".to_owned());
    Ok(result.ok_or_else(missing)??)
}

/// The same if there is `much` work. Otherwise the calling thread runs the job, because the pool
/// would cost more.
pub(crate) fn run_if<T: Send>(
    py: Python<'_>,
    much: bool,
    job: impl FnOnce() -> turnout_core::Result<T> + Send,
) -> Result<T> {
    if much { run(py, job) } else { Ok(py.detach(|| caught(job))??) }
}

/// Returns the result of a job, or an error if it panicked. The core does not panic on input, but a
/// Python thread may write to an array after it was checked.
fn caught<T>(job: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(job)).map_err(|_| {
        let message = "the core stopped: either an array was changed by another thread during the \
                       call, or this is a defect of turnout";
        Failure::Defect(message.to_owned())
    })
}

/// Not generic: the plumbing of the pool is compiled once, and not for every job.
fn install(py: Python<'_>, job: &mut (dyn FnMut() + Send)) -> Result<()> {
    py.detach(|| {
        let pool = current().map_err(|reason| {
            Failure::Defect(format!("the thread pool could not be started: {reason}"))
        })?;
        caught(|| pool.install(job))
    })
}

/// The pool of this process. The list is as long as the chain of forks that used turnout.
fn current() -> Result<&'static ThreadPool, rayon::ThreadPoolBuildError> {
    let process = process::id();
    let mut place = &FIRST;
    loop {
        match place.get() {
            Some(node) if node.process == process => return Ok(&node.pool),
            Some(node) => place = &node.next,
            None => {
                let pool = ThreadPoolBuilder::new()
                    .thread_name(|index| format!("turnout-{index}"))
                    .build()?;
                // If another thread was first, this pool is dropped and that one found.
                let node = Node { process, pool, next: OnceLock::new() };
                let _lost: Result<(), Box<Node>> = place.set(Box::new(node));
            }
        }
    }
}
