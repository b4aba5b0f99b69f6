//! Solutions to the exercises that ask for code.
