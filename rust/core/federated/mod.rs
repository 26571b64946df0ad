//! Training by many clients that join at random.
//!
//! * [`select_bernoulli`]: who takes part, and with which of its elements;
//! * [`rounded_gaussian`]: Gaussian noise on a grid, drawn exactly.

mod gaussian;
mod selection;

pub use gaussian::{GAUSSIAN_CHUNK, rounded_gaussian};
pub use selection::select_bernoulli;
//! Federated training with random participation: what clients and the server compute.
//!
//! * [`Gradients`]: gradients of examples, clipped one by one and added up, as floating-point
//!   numbers or exactly on a grid.

mod clipping;

pub use clipping::{Gradients, Part};
