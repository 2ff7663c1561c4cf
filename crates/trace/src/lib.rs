//! What observers make of packets and events: captures, event logs, time-sequence graphs, pictures.
#![forbid(unsafe_code)]
