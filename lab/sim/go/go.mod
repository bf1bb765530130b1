module npuops/labsim

go 1.24.0
