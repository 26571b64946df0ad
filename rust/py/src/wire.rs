//! Binding of `wire` and `device`: plan files, messages, and what answers a plan.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString, PyType};
use turnout_core::device::{self, Answers, Noise};
use turnout_core::wire::{
    self, Groups, Integer, Layout, PlanFile, PublicKey, Refusal, RefusalKind,
};

use crate::arrays::{Out, OutRows};
use crate::errors::{Failure, Result};
use crate::noise::exactly;

/// A plan: its text, its fingerprint, and what stands in it.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct Plan(wire::Plan);

#[pymethods]
impl Plan {
    /// The plan of a question: question, participation and groups as they stand in it, in JSON.
    #[new]
    #[pyo3(signature = (question, participation, serial=None, expires=None, groups=None))]
    fn new(
        question: &str,
        participation: &str,
        serial: Option<u64>,
        expires: Option<u64>,
        groups: Option<&str>,
    ) -> Result<Self> {
        let participation = wire::Participation::read(participation);
        let groups = groups.map_or_else(|| Some(Groups::default()), Groups::read);
        let (Some(participation), Some(groups)) = (participation, groups) else {
            return Err(Failure::Value("no such participation or groups".to_owned()));
        };
        let make = || {
            let mut plan = wire::Plan::new(question, participation)?.with_groups(groups)?;
            if let Some(serial) = serial {
                plan = plan.with_serial(serial)?;
            }
            if let Some(expires) = expires { plan.with_expires(expires) } else { Ok(plan) }
        };
        make().map(Self).map_err(|error| written(&error))
    }

    /// The plan that a text describes, in whatever form of JSON.
    #[staticmethod]
    fn described(text: &[u8]) -> Result<Self> {
        let text = core::str::from_utf8(text).map_err(|_| Failure::Corrupt(NO_TEXT.to_owned()))?;
        Ok(Self(wire::Plan::described(text)?))
    }

    /// Checks a plan file; gives its plan.
    #[staticmethod]
    #[pyo3(signature = (data, public_key=None))]
    fn of_file(data: &[u8], public_key: Option<&[u8]>) -> Result<Self> {
        let key = public_key.map(|key| exactly("public_key", key)).transpose()?;
        let file = PlanFile::read(data, key.map(PublicKey::from_bytes).as_ref())?;
        Ok(Self(file.into_plan()))
    }

    /// A copy, in another process too, is read from its text.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let read = py.get_type::<Self>().getattr("described")?;
        Ok((read, (PyBytes::new(py, self.0.text().as_bytes()),)))
    }

    /// Its canonical text.
    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    /// SHA-256 of its text, in hexadecimal.
    #[getter]
    fn fingerprint(&self) -> String {
        self.0.fingerprint().to_string()
    }

    /// The description of what is asked, in JSON.
    #[getter]
    fn question(&self) -> &str {
        self.0.question()
    }

    /// Who takes part, in JSON.
    #[getter]
    fn participation(&self) -> String {
        self.0.participation().to_string()
    }

    #[getter]
    fn serial(&self) -> Option<u64> {
        self.0.serial()
    }

    /// When it expires, in seconds since the start of 1970.
    #[getter]
    fn expires(&self) -> Option<u64> {
        self.0.expires()
    }

    /// The public columns of messages and their values, in JSON.
    #[getter]
    fn groups(&self) -> Option<String> {
        let groups = self.0.groups();
        (!groups.is_empty()).then(|| groups.to_string())
    }

    /// What a signature of it is of.
    fn to_sign(&self) -> [u8; 53] {
        PlanFile::to_sign(&self.0)
    }

    /// Writes its file, with the public key and the signature of who signed it.
    #[pyo3(signature = (public_key=None, signature=None))]
    fn file(&self, public_key: Option<&[u8]>, signature: Option<&[u8]>) -> Result<String> {
        let signed = match public_key.zip(signature) {
            None => None,
            Some((key, value)) => {
                let key = PublicKey::from_bytes(exactly("public_key", key)?);
                Some((key, exactly("signature", value)?))
            }
        };
        PlanFile::write_signed(&self.0, signed).map_err(|error| written(&error))
    }
}

impl Plan {
    pub(crate) const fn inner(&self) -> &wire::Plan {
        &self.0
    }

    pub(crate) const fn of(plan: wire::Plan) -> Self {
        Self(plan)
    }
}

const NO_TEXT: &str = "not a plan of turnout: it is no text in UTF-8";

/// The failure of a document that is to be written: its parts are arguments of Python's.
pub(crate) fn written(error: &wire::Error) -> Failure {
    Failure::Value(error.to_string())
}

/// The layout of reports: bytes of an integer, whether it has a sign, and how many there are in a row.
fn layout(itemsize: usize, signed: bool, width: Option<usize>) -> Result<Layout> {
    let integer = Integer::new(itemsize, signed);
    let integer = integer.ok_or_else(|| Failure::Value("no such integers".to_owned()))?;
    Ok(width.map_or(Layout::one(integer), |width| Layout::row(integer, width)))
}

/// The result of [`MessageReader`]. For good messages: their places, the indices of their plans,
/// their nonces, their contents in 16 bytes, the indices of the values of their groups, and the
/// bytes of their reports. For the others: their places, the kinds of the refusals, and the
/// reasons.
type Read<'py> = (
    Out<i64>,
    Out<u32>,
    Bound<'py, PyList>,
    Bound<'py, PyList>,
    OutRows<u32>,
    OutRows<u8>,
    Vec<(usize, &'static str, String)>,
);

/// Reads messages under some plans of one layout.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct MessageReader(wire::MessageReader);

/// A message as Python has it.
enum Message<'a> {
    Text(&'a [u8]),
    Copied(Vec<u8>),
    /// A text that is no Unicode.
    None,
}

impl Message<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) => bytes,
            Self::Copied(bytes) => bytes,
            Self::None => b"",
        }
    }
}

/// What was found in messages.
#[derive(Default)]
struct Found {
    places: Vec<i64>,
    plans: Vec<u32>,
    nonces: Vec<[u8; wire::NONCE_BYTES]>,
    contents: Vec<Vec<u8>>,
    groups: Vec<u32>,
    reports: Vec<u8>,
    refused: Vec<(usize, Refusal)>,
}

#[pymethods]
impl MessageReader {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "Python's lists are taken as vectors")]
    fn new(
        plans: Vec<PyRef<'_, Plan>>,
        itemsize: usize,
        signed: bool,
        width: Option<usize>,
    ) -> Result<Self> {
        let plans = plans.iter().map(|plan| plan.inner());
        Ok(Self(wire::MessageReader::new(plans, layout(itemsize, signed, width)?)))
    }

    /// Reads a list of bytes, bytearrays and texts.
    fn read<'py>(&self, py: Python<'py>, messages: &Bound<'py, PyList>) -> Result<Read<'py>> {
        let objects: Vec<Bound<'py, PyAny>> = messages.iter().collect();
        let taken: Result<Vec<Message<'_>>> =
            objects.iter().enumerate().map(|(place, each)| message(place, each)).collect();
        let taken = taken?;
        let found = py.detach(|| self.found(&taken));
        let columns = self.0.columns();
        let list = |items: Vec<Bound<'py, PyBytes>>| PyList::new(py, items);
        let nonces = found.nonces.iter().map(|nonce| PyBytes::new(py, nonce)).collect();
        let contents = found.contents.iter().map(|content| PyBytes::new(py, content)).collect();
        let refused = found
            .refused
            .iter()
            .map(|(place, refusal)| (*place, kind(refusal.kind()), refusal.to_string()));
        Ok((
            Out(found.places),
            Out(found.plans),
            list(nonces)?,
            list(contents)?,
            OutRows(found.groups, columns),
            OutRows(found.reports, self.0.layout().bytes()),
            refused.collect(),
        ))
    }
}

impl MessageReader {
    fn found(&self, messages: &[Message<'_>]) -> Found {
        let mut found = Found::default();
        let mut report = vec![0; self.0.layout().bytes()];
        let mut group = vec![0; self.0.columns()];
        for (place, message) in messages.iter().enumerate() {
            group.fill(0);
            match self.0.read(message.bytes(), &mut report, &mut group) {
                Ok(envelope) => {
                    found.places.push(place.try_into().unwrap_or(i64::MAX));
                    found.plans.push(envelope.plan.try_into().unwrap_or(u32::MAX));
                    found.nonces.push(envelope.nonce);
                    found.contents.push(wire::MessageReader::content(&report, &group));
                    found.groups.extend(&group);
                    found.reports.extend(&report);
                }
                Err(refusal) => found.refused.push((place, refusal)),
            }
        }
        found
    }
}

/// What Python calls a kind of refusals.
const fn kind(kind: RefusalKind) -> &'static str {
    match kind {
        RefusalKind::OtherVersion => "other_version",
        RefusalKind::OtherPlan => "other_plan",
        _ => "malformed",
    }
}

fn message<'a>(place: usize, given: &'a Bound<'_, PyAny>) -> Result<Message<'a>> {
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok(Message::Text(bytes.as_bytes()));
    }
    if let Ok(text) = given.cast::<PyString>() {
        // Half of a surrogate pair stands in no message.
        return Ok(text.to_str().map_or(Message::None, |text| Message::Text(text.as_bytes())));
    }
    if let Ok(bytes) = given.cast::<PyByteArray>() {
        return Ok(Message::Copied(bytes.to_vec()));
    }
    let found = given.get_type().name()?;
    Err(Failure::Type(format!("messages[{place}] must be bytes or text, got a {found}")))
}

/// The records of messages, from their nonces and their contents: the records of all, one after the
/// other, and the first record of each nonce, in order.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's lists are taken as vectors")]
pub(crate) fn message_records(
    py: Python<'_>,
    nonces: Vec<PyBackedBytes>,
    contents: Vec<PyBackedBytes>,
) -> (Bound<'_, PyBytes>, Bound<'_, PyBytes>) {
    let (all, first) = py.detach(|| {
        let both = nonces.iter().zip(&contents);
        let all: Vec<_> = both.map(|(nonce, content)| wire::record(nonce, content)).collect();
        let first = wire::first_records(&all);
        (all, first)
    });
    (PyBytes::new(py, all.as_flattened()), PyBytes::new(py, first.as_flattened()))
}

/// Writes messages under a plan.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct MessageWriter(wire::MessageWriter);

#[pymethods]
impl MessageWriter {
    #[new]
    fn new(plan: &Plan, itemsize: usize, signed: bool, width: Option<usize>) -> Result<Self> {
        Ok(Self(wire::MessageWriter::new(plan.inner(), layout(itemsize, signed, width)?)))
    }

    /// Writes one message, with a nonce from the operating system. The report is the little-endian
    /// bytes of its integers, and the group is as a message states it.
    #[pyo3(signature = (report, group=None))]
    fn write<'py>(
        &self,
        py: Python<'py>,
        report: &[u8],
        group: Option<&str>,
    ) -> Result<Bound<'py, PyBytes>> {
        let numbers = numbers(self.0.groups(), group)?;
        let text = self.0.write(device::nonce()?, &numbers, report);
        let text =
            text.ok_or_else(|| Failure::Value("the report is of another layout".to_owned()))?;
        Ok(PyBytes::new(py, text.as_bytes()))
    }
}

/// The numbers of the values of a group.
fn numbers(groups: &Groups, group: Option<&str>) -> Result<Vec<u32>> {
    let found = group.map_or_else(|| Some(Vec::new()), |group| groups.find(group));
    found
        .filter(|numbers| numbers.len() == groups.len())
        .ok_or_else(|| Failure::Value(device::Error::Group.to_string()))
}

/// Answers a plan whose question the core knows, and of which nothing is kept.
#[pyclass(frozen, module = "turnout._core")]
pub(crate) struct Device {
    device: device::Device,
    /// What it was made of, for copies.
    plan: Py<Plan>,
}

#[pymethods]
impl Device {
    #[new]
    fn new(py: Python<'_>, plan: Py<Plan>) -> Result<Self> {
        let described = plan.get().inner();
        let device = py.detach(|| device::Device::new(described))?;
        Ok(Self { device, plan })
    }

    /// A copy, in another process too, is made anew.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (Py<Plan>,)) {
        (py.get_type::<Self>(), (self.plan.clone_ref(py),))
    }

    /// The message of one person, by the code of the answer or a code for each column; none if this
    /// person does not take part.
    #[pyo3(signature = (codes, group=None, seed=None))]
    fn of_codes<'py>(
        &self,
        py: Python<'py>,
        codes: Vec<u32>,
        group: Option<&str>,
        seed: Option<u64>,
    ) -> Result<Option<Bound<'py, PyBytes>>> {
        self.message(py, &Answers::Codes(codes), group, seed)
    }

    /// The message of one person, by the numbers that this person holds.
    #[pyo3(signature = (numbers, group=None, seed=None))]
    fn of_numbers<'py>(
        &self,
        py: Python<'py>,
        numbers: Vec<f64>,
        group: Option<&str>,
        seed: Option<u64>,
    ) -> Result<Option<Bound<'py, PyBytes>>> {
        self.message(py, &Answers::Numbers(numbers), group, seed)
    }
}

impl Device {
    fn message<'py>(
        &self,
        py: Python<'py>,
        answer: &Answers,
        group: Option<&str>,
        seed: Option<u64>,
    ) -> Result<Option<Bound<'py, PyBytes>>> {
        let numbers = numbers(self.device.writer().groups(), group)?;
        let noise = seed.map_or(Noise::Fresh, Noise::Seed);
        let message = self.device.message(answer, &numbers, noise)?;
        Ok(message.map(|message| PyBytes::new(py, message.as_bytes())))
    }
}
