//! Binding of `tickets`: blind signatures, for invitations.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use turnout_core::tickets::{Ticket, TicketError, TicketKey, TicketPublicKey, TicketRequest};

use crate::errors::{Failure, Result};

impl From<TicketError> for Failure {
    fn from(error: TicketError) -> Self {
        match error {
            TicketError::Randomness => Self::Defect(error.to_string()),
            other => Self::Value(other.to_string()),
        }
    }
}

/// The secret key of a server that signs tickets.
#[pyclass(name = "TicketKey", module = "turnout._core", frozen)]
pub(crate) struct PyTicketKey(TicketKey);

#[pymethods]
impl PyTicketKey {
    #[new]
    fn new(der: &[u8]) -> Result<Self> {
        Ok(Self(TicketKey::from_der(der)?))
    }

    #[staticmethod]
    fn generate(py: Python<'_>) -> Result<Self> {
        Ok(Self(py.detach(TicketKey::generate)?))
    }

    fn to_der<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_der()?))
    }

    fn public_key<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.public_key().to_der()?))
    }

    fn sign<'py>(&self, py: Python<'py>, blinded: &[u8]) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.sign(blinded))?))
    }
}

/// A ticket that waits for its signature.
#[pyclass(name = "TicketRequest", module = "turnout._core", frozen)]
pub(crate) struct PyTicketRequest(TicketRequest);

#[pymethods]
impl PyTicketRequest {
    #[new]
    fn new(public_key: &[u8]) -> Result<Self> {
        Ok(Self(TicketPublicKey::from_der(public_key)?.request()?))
    }

    #[getter]
    fn blinded<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.blinded())
    }

    fn finish<'py>(&self, py: Python<'py>, answer: &[u8]) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.finish(answer)?.to_bytes()))
    }
}

/// The number of a ticket that bears a signature of the key; of any other bytes none.
#[pyfunction]
pub(crate) fn ticket_number<'py>(
    py: Python<'py>,
    public_key: &[u8],
    ticket: &[u8],
) -> Result<Option<Bound<'py, PyBytes>>> {
    let key = TicketPublicKey::from_der(public_key)?;
    let ticket = Ticket::from_bytes(ticket).ok().filter(|ticket| key.verifies(ticket));
    Ok(ticket.map(|ticket| PyBytes::new(py, ticket.number())))
}
