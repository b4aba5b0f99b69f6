//! Draft.
