//! Layouts: what they name, and when two indices name one element.

use ch18_back_to_pytorch::layout::Layout;
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn one_memory_in_several_ways() {
    let rows = Layout::rows(&[2, 3]);
    assert_eq!(rows.places(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(rows.clone().transposed(0, 1).places(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(rows.clone().every(1, 2).places(), [0, 2, 3, 5]);
    assert_eq!(rows.clone().every(1, -1).places(), [2, 1, 0, 5, 4, 3]);
    assert_eq!(rows.clone().every(1, -2).places(), [2, 0, 5, 3]);
    assert_eq!(rows.clone().every(1, 0), rows);
    assert_eq!(rows.clone().transposed(0, 2), rows);
    assert_eq!(Layout::rows(&[2]).repeated(2).places(), [0, 1, 0, 1]);
    assert!(Layout::rows(&[]).places() == [0] && Layout::rows(&[3, 0]).is_empty());
}

proptest! {
    /// Looking at strides alone never misses a meeting; of layouts that are made of rows by taking
    /// parts it refuses none.
    #[test]
    fn strides_tell_no_lie(shape in vec(0..4_usize, 0..4), strides in vec(-5..6_isize, 4)) {
        let strides = strides[..shape.len()].to_vec();
        let layout = Layout { shape: shape.clone(), strides, offset: 0 };
        prop_assert!(layout.may_meet_itself() || !layout.meets_itself());
        let parts = Layout::rows(&shape).every(0, -2).transposed(0, 1).every(1, 3);
        prop_assert!(!parts.may_meet_itself() && !parts.meets_itself());
        prop_assert_eq!(parts.places().len(), parts.len());
    }
}
