int stub_cudart_is_here = 1;
