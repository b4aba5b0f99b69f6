//! Textures and surfaces over the buffers of a memory.

use super::buffers::Memory;
use super::error::MemoryError;
use crate::memory::texture::{Image, MOST, Object, Sampler, check};

impl Memory {
    /// A texture object over texels that lie in this memory: its handle, which a kernel takes as
    /// `cudaTextureObject_t`. Reports call it by `name`. [`Memory::free`] gives it back; the buffer
    /// stays.
    ///
    /// ```
    /// use simt::{AddressMode, Element, Extent, Image, Launch, Memory, Module, Sampler};
    ///
    /// // float x = tex2D<float>(texels, threadIdx.x - 1.0f, 1.0f);
    /// let module = Module::parse(
    ///     ".version 8.0 .target sm_80 .address_size 64
    ///     .visible .entry row(.param .u64 texels, .param .u64 out) {
    ///         .reg .b32 %r<2>; .reg .f32 %f<7>; .reg .b64 %rd<4>;
    ///         ld.param.u64 %rd1, [texels]; ld.param.u64 %rd2, [out];
    ///         mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd2, %rd2, %rd3;
    ///         cvt.rn.f32.u32 %f1, %r1; add.rn.f32 %f1, %f1, 0fBF800000; mov.f32 %f2, 0f3F800000;
    ///         tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
    ///         st.global.f32 [%rd2], %f3;
    ///     }",
    /// )?;
    /// let memory = Memory::new(1 << 20);
    /// let address = memory.allocate("texels", 4 * 3 * 2)?;
    /// let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    /// memory.write(address, &bytes)?;
    /// let extent = Extent::Array2d { width: 3, height: 2 };
    /// let image = Image { address, extent, element: Element::F32, channels: 1 };
    /// let sampler = Sampler { address_modes: [AddressMode::Clamp; 3], ..Sampler::default() };
    /// let texture = memory.texture("t", image, sampler)?;
    ///
    /// let out = memory.allocate("out", 4 * 5)?;
    /// let arguments = [texture.to_le_bytes(), out.to_le_bytes()].concat();
    /// let kernel = module.kernel("row").expect("it is there");
    /// Launch::new(kernel, [1; 3], [5, 1, 1], &arguments).prepare(&memory)?.run(0..1)?;
    /// let mut result = [0; 20];
    /// memory.read(out, &mut result)?;
    /// let row: Vec<f32> = result.chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
    /// assert_eq!(row, [4.0, 4.0, 5.0, 6.0, 6.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadImage`] if CUDA or the emulator has no such texture: extents beyond those
    /// of an H100, texels that do not lie in one buffer or are not aligned, [`Filter::Linear`],
    /// normalized values of other elements than integers of 8 and 16 bits.
    pub fn texture(&self, name: &str, image: Image, sampler: Sampler) -> Result<u64, MemoryError> {
        self.object(name, image, Some(sampler))
    }

    /// A surface object over texels that lie in this memory, which kernels read and write: its
    /// handle, which a kernel takes as `cudaSurfaceObject_t`. Reports call it by `name`.
    /// [`Memory::free`] gives it back; the buffer stays.
    ///
    /// # Errors
    ///
    /// [`MemoryError::BadImage`], as of [`Memory::texture`]; also for linear and pitched memory, of
    /// which CUDA has no surfaces.
    pub fn surface(&self, name: &str, image: Image) -> Result<u64, MemoryError> {
        self.object(name, image, None)
    }

    fn object(
        &self,
        name: &str,
        image: Image,
        sampler: Option<Sampler>,
    ) -> Result<u64, MemoryError> {
        let wrong = |why| MemoryError::BadImage { name: name.to_string(), why };
        check(&image, sampler.as_ref()).map_err(wrong)?;
        let [_, height, depth] = image.extent.texels();
        let last = image.place(image.row_bytes(), [height - 1, depth - 1]);
        self.holds(image.address, last - image.address).map_err(wrong)?;
        let object = Object { name: name.into(), image, sampler };
        let made = self.objects.add(object);
        made.ok_or_else(|| wrong(format!("there are {MOST} textures and surfaces already")))
    }
}
