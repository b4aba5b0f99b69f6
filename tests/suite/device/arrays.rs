//! Buffers.

use half::{bf16, f16};
use linrec::Error;
use linrec::device::{Buffer, Device};
use num_complex::Complex;

use super::{assert_error, on_every_device};

fn there_and_back<T>(device: &Device, values: &[T]) -> Result<(), Error>
where
    T: bytemuck::Pod + PartialEq + std::fmt::Debug,
{
    let mut buffer = device.upload(values)?;
    assert_eq!(buffer.len(), values.len());
    assert_eq!(buffer.download()?, values);
    let turned: Vec<T> = values.iter().rev().copied().collect();
    buffer.upload(&turned)?;
    assert_eq!(buffer.download()?, turned);
    buffer.zero()?;
    assert!(
        buffer.download()?.iter().all(|value| bytemuck::bytes_of(value).iter().all(|&b| b == 0))
    );
    Ok(())
}

#[test]
fn downloads_return_the_uploaded_values() {
    on_every_device(|device| {
        there_and_back(device, &[1.5_f32, -0.0, f32::INFINITY])?;
        there_and_back(device, &[1e-300_f64, 2.0])?;
        there_and_back(device, &[bf16::from_f32(1.0), bf16::from_f32(-3.5), bf16::ZERO])?;
        there_and_back(device, &[f16::from_f32(0.1)])?;
        there_and_back(device, &[Complex::new(1.0_f32, 2.0), Complex::new(3.0, 4.0)])?;
        there_and_back(device, &[Complex::new(1.0_f64, 2.0)])?;
        there_and_back(device, &[1_u8, 2, 3])?;
        there_and_back(device, &(0..100_000_u32).collect::<Vec<_>>())?;
        there_and_back::<u64>(device, &[])
    });
}

#[test]
fn poison_is_nan_in_every_format() {
    on_every_device(|device| {
        let mut buffer: Buffer<f32> = device.allocate(1001)?;
        buffer.poison()?;
        assert!(buffer.download()?.iter().all(|value| value.is_nan()));
        let mut buffer: Buffer<f64> = device.allocate(3)?;
        buffer.poison()?;
        assert!(buffer.download()?.iter().all(|value| value.is_nan()));
        let mut buffer: Buffer<bf16> = device.allocate(3)?;
        buffer.poison()?;
        assert!(buffer.download()?.iter().all(|value| value.is_nan()));
        let mut buffer: Buffer<Complex<f32>> = device.allocate(3)?;
        buffer.poison()?;
        assert!(buffer.download()?.iter().all(|value| value.re.is_nan() && value.im.is_nan()));
        Ok(())
    });
}

#[test]
fn a_slice_is_a_handle_to_the_same_memory() {
    on_every_device(|device| {
        let buffer = device.upload(&[0_u16, 1, 2, 3, 4, 5, 6])?;
        let mut middle = buffer.slice(1..=4)?;
        let mut inner = middle.slice(2..)?;
        assert_eq!(inner.download()?, [3, 4]);
        inner.upload(&[30, 40])?;
        middle.slice(..1)?.zero()?;
        assert_eq!(buffer.download()?, [0, 0, 2, 30, 40, 5, 6]);
        drop(buffer);
        middle.poison()?;
        assert_eq!(inner.download()?, [0xFFFF; 2], "a slice keeps the memory");
        assert!(middle.slice(4..)?.is_empty());
        for (start, end) in [(0, 5), (3, 2), (5, 5), (0, usize::MAX)] {
            assert_error(
                middle.slice(start..end),
                &["shape mismatch in slice: buffer [4], range ["],
            );
        }
        Ok(())
    });
}

#[test]
fn an_upload_of_another_length_is_refused() {
    on_every_device(|device| {
        let mut buffer = device.allocate::<f32>(3)?;
        let said = "shape mismatch in upload: buffer [3], values [4]";
        assert_error(buffer.upload(&[0.0; 4]), &[said]);
        Ok(())
    });
}

#[test]
fn too_much_memory_is_refused_with_what_is_free() {
    on_every_device(|device| {
        let (_, total) = device.memory()?;
        let len = total as usize;
        let asked = format!("out of memory: asked for {} bytes", 4 * len);
        assert_error(device.allocate::<f32>(len), &[device.label(), &asked, "free"]);
        assert_error(device.allocate::<f64>(usize::MAX), &["no memory holds `f64["]);
        assert_error(device.allocate::<u8>(usize::MAX), &["out of memory", "free"]);
        // The device still works.
        assert_eq!(device.upload(&[1_u8])?.download()?, [1]);
        Ok(())
    });
}

#[test]
fn dropped_buffers_free_their_memory() {
    on_every_device(|device| {
        let (free, _) = device.memory()?;
        let len = (free / 4) as usize;
        for _ in 0..20 {
            device.allocate::<u8>(len)?.slice(len - 1..)?.upload(&[1])?;
        }
        Ok(())
    });
}

#[test]
fn buffers_can_move_between_threads() {
    on_every_device(|device| {
        let buffer = device.upload(&[7_u32; 1000])?;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let copy = device.upload(&buffer.download().unwrap()).unwrap();
                    assert_eq!(copy.download().unwrap(), [7; 1000]);
                });
            }
        });
        // Dropped on a thread that has not used the device.
        std::thread::spawn(move || drop(buffer)).join().expect("the thread ends");
        device.synchronize()
    });
}
