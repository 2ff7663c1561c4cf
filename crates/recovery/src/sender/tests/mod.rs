//! Tests of the sender as a whole.

mod cwr;
mod double;
mod events;
mod f_rto;
mod inherit;
mod network;
mod order;
mod profiles;
mod prr;
mod requirements;
mod resize;
mod sending;
mod take_over;
mod undo;
mod validation;
