//! Training by many clients that join at random: what clients and the server compute.
//!
//! * [`BernoulliSelection`]: which clients take part, and which of their elements they use;
//! * [`Gradients`]: gradients of examples, clipped one by one and added up, as floating-point
//!   numbers or exactly on a grid;
//! * [`rounded_gaussian`]: Gaussian noise on a grid, drawn exactly.

mod clipping;
mod gaussian;
mod selection;

pub use clipping::{Gradients, Part};
pub use gaussian::{GAUSSIAN_CHUNK, rounded_gaussian};
pub use selection::BernoulliSelection;
