//! A slab of sockets: numbered places with generations.

/// The id of a socket of one host.
///
/// An id is never reused: once the socket is closed, using its id is an error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SocketId {
    index: u32,
    generation: u32,
}

/// Values by [`SocketId`].
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Inserts a value into the place freed last.
    pub(super) fn insert(&mut self, value: T) -> SocketId {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.value = Some(value);
            return SocketId { index, generation: place.generation };
        }
        let index = u32::try_from(self.places.len()).expect("memory ends long before 2^32 sockets");
        self.places.push(Place { generation: 0, value: Some(value) });
        SocketId { index, generation: 0 }
    }

    pub(super) fn get(&self, id: SocketId) -> Option<&T> {
        let place = self.places.get(id.index as usize)?;
        if place.generation == id.generation { place.value.as_ref() } else { None }
    }

    pub(super) fn get_mut(&mut self, id: SocketId) -> Option<&mut T> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.generation == id.generation { place.value.as_mut() } else { None }
    }

    /// Replaces a value under the same id, and returns the old one.
    pub(super) fn replace(&mut self, id: SocketId, value: T) -> Option<T> {
        self.get_mut(id).map(|place| std::mem::replace(place, value))
    }

    pub(super) fn remove(&mut self, id: SocketId) -> Option<T> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.generation != id.generation {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(value)
    }

    /// All ids, in the order of places.
    pub(super) fn ids(&self) -> impl Iterator<Item = SocketId> {
        let taken = (0u32..).zip(&self.places).filter(|(_, place)| place.value.is_some());
        taken.map(|(index, place)| SocketId { index, generation: place.generation })
    }

    /// All values, in the order of places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_id_never_names_another_value() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(second.index, first.index, "the place is used again");
        assert_eq!((slab.get(first), slab.get(second)), (None, Some(&'b')));
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.iter().count(), 1);
        assert!(slab.ids().eq([second]));
    }
}
