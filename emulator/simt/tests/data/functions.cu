// Functions of f32 and f64, conversions between numbers, and integer instructions beyond + and *.

extern "C" __global__ void functions(float* x, double* d) {
    const int i = threadIdx.x;
    x[i] = expf(x[i]) + __expf(x[i]) + log1pf(x[i]) + tanhf(x[i]) + rsqrtf(x[i]) + __sinf(x[i]) + __fdividef(x[i], 3.0f);
    x[i + 1] = copysignf(sqrtf(x[i]), x[i + 1]) / x[i] + __fadd_rz(x[i], 1.0f) + __saturatef(x[i]) + fminf(x[i], floorf(x[i]));
    d[i] = exp(d[i]) + log(d[i]) + sqrt(d[i]) / d[i + 1] + rsqrt(d[i]) + fmax(d[i], rint(d[i])) + copysign(d[i], d[i + 1]);
}

extern "C" __global__ void conversions(float* x, double* d, int* n, unsigned* u, long long* l, unsigned long long* ul, short* s) {
    const int i = threadIdx.x;
    n[i] = x[i];
    u[i] = d[i];
    l[i] = x[i + 1];
    ul[i] = d[i + 1];
    s[i] = x[i + 2];
    x[i] = n[i + 1] + (float)u[i + 1] + (float)l[i + 1] + (float)ul[i + 1] + s[i + 1] + (float)d[i];
    d[i] = n[i + 2] + (double)u[i + 2] + (double)l[i + 2] + (double)ul[i + 2] + x[i + 3];
    n[i + 3] = __float2int_rd(x[i]) + __double2loint(d[i]) + isnan(x[i]) + !(d[i] < x[i]);
}

extern "C" __global__ void integers(int* n, unsigned* u, long long* l, unsigned long long* ul) {
    const int i = threadIdx.x;
    n[i] = n[i] / 7 + n[i] % (n[i + 1] | 1) + __mulhi(n[i], n[i + 1]) + abs(n[i]) + __clz(n[i]) + __ffs(n[i]);
    u[i] = u[i] / (u[i + 1] | 1) + __brev(u[i]) + __byte_perm(u[i], u[i + 1], 0x3210) + __funnelshift_l(u[i], u[i + 1], 3);
    l[i] = l[i] / (l[i + 1] | 1) + l[i] % 10 + __mul64hi(l[i], 3) + (l[i] >> n[i]) + __popcll(ul[i]);
    ul[i] = ul[i] % (ul[i + 1] | 1) + (ul[i] << n[i]) + __umul64hi(ul[i], 5) + __usad(u[i], u[i + 1], 3);
    float local[16];
    for (int k = 0; k < 16; k++) local[k] = n[k];
    local[n[0] & 15] = 3;
    u[i + 2] = local[n[1] & 15];
}
