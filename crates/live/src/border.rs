//! What the page's script calls: it puts a request where [`request`] says, calls [`answer`], and
//! reads as many bytes from [`place`]. All in safe Rust: a module without threads, whose memory is
//! the script's to read and write anyway.

use std::cell::RefCell;

use crate::Live;

thread_local! {
    static LIVE: RefCell<Live> = RefCell::default();
    static BYTES: RefCell<Vec<u8>> = RefCell::default();
}

/// Makes room for a request of so many bytes, and says where.
#[expect(unsafe_code, reason = "a name that the script finds, and that nothing else has")]
#[unsafe(no_mangle)]
pub extern "C" fn request(bytes: usize) -> *mut u8 {
    BYTES.with_borrow_mut(|all| {
        all.clear();
        all.resize(bytes, 0);
        all.as_mut_ptr()
    })
}

/// Answers the request, and says how many bytes the answer has.
#[expect(unsafe_code, reason = "a name that the script finds, and that nothing else has")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    let request = BYTES.take();
    let answer = LIVE.with_borrow_mut(|live| live.answer(&String::from_utf8_lossy(&request)));
    let bytes = answer.len();
    BYTES.set(answer.into_bytes());
    bytes
}

/// Where the answer lies, up to the next request.
#[expect(unsafe_code, reason = "a name that the script finds, and that nothing else has")]
#[unsafe(no_mangle)]
pub extern "C" fn place() -> *const u8 {
    BYTES.with_borrow(|all| all.as_ptr())
}
