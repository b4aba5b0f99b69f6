// Fetches from textures, loads and stores of surfaces, with coordinates from a buffer: four floats for each thread.

extern "C" __global__ void fetches(cudaTextureObject_t linear, cudaTextureObject_t pitched, cudaTextureObject_t volume,
                                   cudaTextureObject_t layers, const float4* at, float4* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    const float4 c = at[i];
    out[i] = make_float4(tex1Dfetch<float>(linear, i - 3), tex3D<float>(volume, c.x, c.y, c.z),
                         tex2DLayered<float>(layers, c.x, c.y, i % 3), tex2DLod<float4>(pitched, c.x, c.y, 2.0f).z);
    out[n + i] = tex2D<float4>(pitched, c.x, c.y);
}

extern "C" __global__ void integers(cudaTextureObject_t bytes, cudaTextureObject_t line, cudaTextureObject_t lines,
                                    const float4* at, int4* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 c = at[i];
    const uchar4 b = tex2D<uchar4>(bytes, c.x, c.y);
    const short2 s = tex1D<short2>(line, c.x);
    out[i] = make_int4(b.x | b.y << 8 | b.z << 16 | b.w << 24, s.x, s.y, tex1DLayered<int>(lines, c.x, i % 2));
}

extern "C" __global__ void surfaces(cudaSurfaceObject_t from, cudaSurfaceObject_t to, cudaSurfaceObject_t layers,
                                    cudaSurfaceObject_t volume) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float value;
    surf2Dread(&value, from, x * (int)sizeof(float), y, cudaBoundaryModeZero);
    surf2Dwrite(value, to, x * (int)sizeof(float), y, cudaBoundaryModeZero);
    const float2 pair = surf2DLayeredread<float2>(layers, x * (int)sizeof(float2), y, 1, cudaBoundaryModeClamp);
    surf2DLayeredwrite(pair, layers, x * (int)sizeof(float2), y, 0, cudaBoundaryModeZero);
    if (x == 0 && y < 3) {
        uchar4 byte = surf3Dread<uchar4>(volume, 4 * y, 1, 0);
        byte.x += 1;
        surf3Dwrite(byte, volume, 4 * y, 0, 1);
    }
}
