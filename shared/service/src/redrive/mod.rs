//! Redrive as use cases: [`plan`] (writes nothing), the orders of [`orders`] (start, stop, resume), and
//! [`release`], by which the reconciler carries runs out.

pub mod orders;
pub mod plan;
pub mod release;
