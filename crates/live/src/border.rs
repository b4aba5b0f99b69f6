//! The functions that the page's script calls. It calls [`request`] for the address of a buffer,
//! writes a request there, calls [`answer`] for the size of the answer, and reads it at the address
//! that [`place`] returns. All of this is safe Rust: the module has no threads, and the script may
//! read and write its memory anyway.

use std::cell::RefCell;

use crate::Live;

thread_local! {
    static LIVE: RefCell<Live> = RefCell::default();
    static BYTES: RefCell<Vec<u8>> = RefCell::default();
}

/// Allocates a buffer for a request of this number of bytes, and returns its address.
#[expect(unsafe_code, reason = "the script finds it by this name, which is unique")]
#[unsafe(no_mangle)]
pub extern "C" fn request(bytes: usize) -> *mut u8 {
    BYTES.with_borrow_mut(|all| {
        all.clear();
        all.resize(bytes, 0);
        all.as_mut_ptr()
    })
}

/// Answers the request, and returns the size of the answer in bytes.
#[expect(unsafe_code, reason = "the script finds it by this name, which is unique")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let request = BYTES.take();
    let answer = LIVE.with_borrow_mut(|live| live.answer(&String::from_utf8_lossy(&request)));
    let bytes = answer.len();
    BYTES.set(answer.into_bytes());
    bytes
}

/// Returns the address of the answer, which is valid until the next request.
#[expect(unsafe_code, reason = "the script finds it by this name, which is unique")]
#[unsafe(no_mangle)]
pub extern "C" fn place() -> *const u8 {
    BYTES.with_borrow(|all| all.as_ptr())
}
