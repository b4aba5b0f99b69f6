//! Chapter 8's tests, in one program so that it is linked once. The library's own tests run the
//! contract on this chapter's kernels.

mod mistakes {
    //! The planted mistake.

    use ch08_reverse_and_backward::{pipe, suspect};
    use linrec::contract::suspect::examine;
    use linrec::device::{Device, KernelEngine};
    use linrec::kernels::Memcode;

    #[test]
    fn the_mistake_hides_behind_a_shared_coefficient() {
        let (engine, domain) = suspect::load().unwrap();
        assert!(examine(&engine, &domain).is_some());
        let right = KernelEngine::<f32>::new(&Device::simt(), pipe(Memcode::Direct)).unwrap();
        assert_eq!(suspect::shared_coefficient(&engine, &right, 700).unwrap(), [0.0, 0.0]);
        let wrong = suspect::by_kind(&engine, &domain, 65);
        let count = |kind: &str| {
            let mut verdicts = wrong.iter();
            verdicts.find(|verdict| format!("{:?}", verdict.kind) == kind).unwrap().cases.1
        };
        assert!(count("NearOne") > 0);
        assert_eq!((count("One"), count("MinusOne")), (0, 0));
    }
}
