//! Devices, and loading PTX.

use linrec::device::{Device, driver};

use super::programs::{ECHO, SCALE, THROUGH_SHARED};
use super::{assert_error, on_every_device};

#[test]
fn every_program_has_one_emulator() {
    let device = Device::simt();
    assert_eq!((device.name(), device.label(), device.is_simt()), ("emulator", "simt", true));
    assert_eq!(device, Device::simt());
    assert_eq!(Device::all().last(), Some(&device));
    assert_eq!(format!("{device:?}"), "simt (emulator)");
}

#[test]
fn a_missing_gpu_is_explained() {
    let devices = match driver() {
        Ok(driver) => driver.devices,
        Err(error) => {
            assert_error(Device::cuda(0), &[&error.to_string()]);
            return;
        }
    };
    assert_error(Device::cuda(devices), &[&format!("cuda:{devices}: there is no such device")]);
    assert_error(Device::cuda(usize::MAX), &["there is no such device"]);
}

#[test]
fn devices_have_names_and_attributes() {
    on_every_device(|device| {
        let attributes = device.attributes();
        assert_eq!(attributes.warp_size, 32);
        assert!(attributes.multiprocessors > 0);
        assert!(attributes.max_threads_per_block >= 1024);
        assert!(attributes.shared_bytes_opt_in >= attributes.shared_bytes);
        assert!(attributes.compute_capability >= (8, 0), "the kernels need it");
        let (free, total) = device.memory()?;
        assert!(free <= total && total > 0);
        assert_eq!(device.is_simt(), attributes.cuda_version.is_none());
        Ok(())
    });
}

#[test]
fn a_module_has_kernels_with_parameters() {
    on_every_device(|device| {
        let module = device.module(ECHO)?;
        let echo = module.function("echo")?;
        assert_eq!(echo.name(), "echo");
        let sizes: Vec<_> = echo.params().iter().map(|param| param.bytes).collect();
        assert_eq!(sizes, [8, 1, 2, 4, 8, 16, 8]);
        assert_eq!(echo.attributes().registers.is_none(), device.is_simt());
        assert_eq!(echo.attributes().shared_bytes, 0);
        assert_eq!(echo.occupancy(128, 0)?.is_none(), device.is_simt());
        assert_eq!(echo.occupancy(128, 64 << 10)?.is_none(), device.is_simt());
        assert_eq!(module.functions().count(), 1);
        let said = "the module has no kernel `scale`; its kernels: `echo`";
        assert_error(module.function("scale"), &[device.label(), said]);
        assert_error(module.function("e\0cho"), &["the module has no kernel"]);
        device.module(THROUGH_SHARED)?.function("through_shared")?;
        Ok(())
    });
}

#[test]
fn a_kernel_that_is_not_emulated_leaves_the_others() {
    let device = Device::simt();
    let other = ".visible .entry other() { ret; }";
    let both = format!("{}\n{other}\n", SCALE.replace("mul.rn.f32", "mul.made_up.f32"));
    let module = device.module(&both).unwrap();
    assert!(module.function("other").is_ok());
    assert_eq!(module.functions().count(), 1);
    assert_error(
        module.function("scale"),
        &["the kernel `scale` is not emulated: PTX line", "made_up"],
    );
}

#[test]
fn text_that_is_not_ptx_is_refused() {
    on_every_device(|device| {
        assert_error(device.module("no PTX at all"), &[device.label(), "loading PTX"]);
        let cut = &SCALE[..SCALE.len() / 2];
        assert_error(device.module(cut), &["loading PTX"]);
        let unknown = SCALE.replace("mul.rn.f32", "mul.made_up.f32");
        assert_error(device.module(&unknown), &["loading PTX", "made_up"]);
        let newer = SCALE.replace(".version 8.0", ".version 99.9");
        assert_error(device.module(&newer), &["loading PTX", "99.9"]);
        assert_error(device.module(&SCALE.replace("ret;", "ret;\0")), &["loading PTX"]);
        Ok(())
    });
}

/// A driver of CUDA 13 refuses it with a code that CUDA 12.0 does not have: 225, or the code of a
/// linker's error.
#[test]
fn a_kernel_that_waits_for_its_own_device_is_refused() {
    let ptx = ".version 8.0\n.target sm_80\n.address_size 64\n\
        .extern .func (.param .b32 result) cudaDeviceSynchronize();\n\
        .visible .entry waits() {\n.reg .b32 %r<2>;\n{\n.param .b32 result;\n\
        call.uni (result), cudaDeviceSynchronize, ();\nld.param.b32 %r1, [result];\n}\nret;\n}";
    on_every_device(|device| {
        assert_error(device.module(ptx), &[device.label(), "loading PTX"]);
        Ok(())
    });
}
