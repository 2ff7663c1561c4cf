//! The nodes of a trace.

use std::collections::BTreeSet;

use crate::TraceError;

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// A host with connections: all packets that it sends and receives are captured.
    Host,
    /// A link that forwards packets: only packets with a fate are captured.
    Link,
    /// Another node that forwards packets, such as a router: captured as a link.
    Other,
}

/// A node of a trace. Its index in the list is its [`NodeId`](airtcp_types::NodeId).
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NodeInfo {
    /// The name, unique in the trace.
    pub name: String,
    /// The kind.
    pub kind: NodeKind,
}

/// Rejects a list with duplicate names.
pub(crate) fn check_names(nodes: &[NodeInfo]) -> Result<(), TraceError> {
    let mut names = BTreeSet::new();
    match nodes.iter().find(|node| !names.insert(&node.name)) {
        Some(node) => Err(TraceError::NodeName(node.name.clone())),
        None => Ok(()),
    }
}
