# One Debian package from the folder PACKAGE_STAGE/PACKAGE_NAME: deploy/deb/build.sh sets these variables.
set(CPACK_PACKAGE_NAME "$ENV{PACKAGE_NAME}")
set(CPACK_PACKAGE_VERSION "$ENV{PACKAGE_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "$ENV{PACKAGE_SUMMARY}")
set(stage "$ENV{PACKAGE_STAGE}/${CPACK_PACKAGE_NAME}")
set(CPACK_INSTALLED_DIRECTORIES "${stage};/")
set(CPACK_PACKAGING_INSTALL_PREFIX /)
set(CPACK_SET_DESTDIR ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_FILE_NAME "${CPACK_PACKAGE_NAME}_${CPACK_PACKAGE_VERSION}-1_amd64")
set(CPACK_PACKAGE_CONTACT "$ENV{PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION "Many independent chains sample the weights of a neural network on
a fleet of workers. The draws are stored, and served as Bayesian model
averages with their uncertainty.")
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
if(CPACK_PACKAGE_NAME STREQUAL chainfleet)  # its verb `up` starts both
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "chainfleet-server, chainfleet-worker")
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${stage}/usr/lib/chainfleet/torch/lib;${stage}/usr/lib/chainfleet/nvidia/cu13/lib")
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)  # LibTorch takes minutes otherwise
file(GLOB CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "$ENV{PACKAGE_STAGE}/scripts/${CPACK_PACKAGE_NAME}/*")
