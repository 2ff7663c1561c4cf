//! The nodes of a trace.

use std::collections::BTreeSet;

use crate::TraceError;

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// It has connections: all it sends and receives is captured.
    Host,
    /// It passes packets on: those that met a fate are captured.
    Link,
    /// Anything else that passes packets on, as a router: captured as a link.
    Other,
}

/// A node of a trace. Its place in the list is its [`NodeId`](airtcp_types::NodeId).
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NodeInfo {
    /// What it is called; no two of a trace alike.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
}

/// Refuses a list in which a name stands twice.
pub(crate) fn check_names(nodes: &[NodeInfo]) -> Result<(), TraceError> {
    let mut names = BTreeSet::new();
    match nodes.iter().find(|node| !names.insert(&node.name)) {
        Some(node) => Err(TraceError::NodeName(node.name.clone())),
        None => Ok(()),
    }
}
